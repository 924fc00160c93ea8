"""The events of an Anthropic answer, put together again."""

import json
from collections.abc import Iterator
from typing import Any

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import ModelPiece, StopReason, StreamEnd, ToolCall, Usage
from duckflow.llm.wire.lenient import LenientModel, StreamedError

STOPS: dict[str, StopReason] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tool_calls",
    "refusal": "refusal",
}

ERROR_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""An error inside a stream has no status; its type says which one it would have had."""


class AnthropicTokenCounts(LenientModel):
    """Usage as this wire reports it: what was cached is not part of the input."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None


class AnthropicStart(LenientModel):
    """The message as it is when it begins."""

    usage: AnthropicTokenCounts | None = None


class AnthropicBlock(LenientModel):
    """The beginning of a block: text, a tool call, or thinking, which is not read."""

    type: str = ""
    text: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None


class AnthropicDelta(LenientModel):
    """The next part of a block, or of the message."""

    text: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Failure(LenientModel):
    """An error after the stream had begun."""

    type: str | None = None


class Event(LenientModel):
    """One event of the stream."""

    type: str = ""
    index: int = 0
    message: AnthropicStart | None = None
    content_block: AnthropicBlock | None = None
    delta: AnthropicDelta | None = None
    usage: AnthropicTokenCounts | None = None
    error: Failure | None = None


class AnthropicResponse:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.ended = False
        self._calls: dict[int, tuple[AnthropicBlock, list[str]]] = {}
        self._stop: StopReason = "end"
        self._counts = AnthropicTokenCounts()

    def add(self, data: str) -> str:
        """Take an event in; its text is returned."""
        event = Event.from_json(data)
        if event.error is not None:
            raise StreamedError(ERROR_STATUS.get(event.error.type or "", 500))
        match event.type:
            case "message_start" if event.message and event.message.usage:
                self._count(event.message.usage)
            case "content_block_start" if event.content_block:
                return self._begin(event.index, event.content_block)
            case "content_block_delta" if event.delta:
                return self._continue(event.index, event.delta)
            case "message_delta":
                self._count(event.usage or AnthropicTokenCounts())
                reason = event.delta.stop_reason if event.delta else None
                self._stop = STOPS.get(reason or "", "end")
            case "message_stop":
                self.ended = True
            case _:
                pass
        return ""

    def rest(self) -> Iterator[ModelPiece]:
        """What can be told only at the end."""
        if not self.ended:
            raise Unavailable("llm.cut_off")
        for block, pieces in self._calls.values():
            whole = "".join(pieces) or json.dumps(block.input or {}, ensure_ascii=False)
            yield ToolCall(name=block.name or "", arguments=whole)
        yield StreamEnd(stop=self._stop, usage=self._usage())

    def _begin(self, index: int, block: AnthropicBlock) -> str:
        if block.type == "tool_use":
            self._calls[index] = (block, [])
        return block.text or "" if block.type == "text" else ""

    def _continue(self, index: int, delta: AnthropicDelta) -> str:
        if delta.partial_json and index in self._calls:
            self._calls[index][1].append(delta.partial_json)
        return delta.text or ""

    def _count(self, counts: AnthropicTokenCounts) -> None:
        """The end repeats some of the counts of the beginning; the latest of each holds."""
        self._counts = self._counts.model_copy(update=counts.model_dump(exclude_none=True))

    def _usage(self) -> Usage:
        counts = self._counts
        cached = counts.cache_read_input_tokens or 0
        fresh = (counts.input_tokens or 0) + (counts.cache_creation_input_tokens or 0)
        return Usage(
            input_tokens=fresh + cached, cached_tokens=cached, output_tokens=counts.output_tokens or 0
        )
