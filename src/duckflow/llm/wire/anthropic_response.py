"""Assemble an Anthropic answer from its events."""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import (
    ModelPiece,
    StopReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Thought,
    ToolCall,
    Usage,
)
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
"""HTTP status by the type of an error inside a stream, which has none."""


class AnthropicOutputDetails(LenientModel):
    """Thinking tokens within the output."""

    thinking_tokens: int | None = None


class AnthropicTokenCounts(LenientModel):
    """Usage as this wire reports it: `input_tokens` excludes cached tokens."""

    input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens: int | None = None
    output_tokens_details: AnthropicOutputDetails | None = None


class AnthropicBlock(LenientModel):
    """Start of a text, tool call or thinking block; the whole block in an answer that is not streamed."""

    type: str = ""
    text: str | None = None
    id: str | None = None
    name: str | None = None
    input: dict[str, Any] | None = None
    thinking: str | None = None
    signature: str | None = None
    data: str | None = None


class AnthropicMessage(LenientModel):
    """Start of the message, or the whole message if it is not streamed."""

    content: tuple[AnthropicBlock, ...] = ()
    stop_reason: str | None = None
    usage: AnthropicTokenCounts | None = None


class AnthropicDelta(LenientModel):
    """Next part of a block or of the message."""

    text: str | None = None
    thinking: str | None = None
    signature: str | None = None
    partial_json: str | None = None
    stop_reason: str | None = None


class Failure(LenientModel):
    """Error inside the stream."""

    type: str | None = None


class Event(LenientModel):
    """Event of the stream."""

    type: str = ""
    index: int = 0
    message: AnthropicMessage | None = None
    content_block: AnthropicBlock | None = None
    delta: AnthropicDelta | None = None
    usage: AnthropicTokenCounts | None = None
    error: Failure | None = None


class _OpenBlock:
    """Block that is still arriving. `written` is the JSON of a call or the text of a thought."""

    def __init__(self, block: AnthropicBlock, place: int) -> None:
        self.begun, self.place = block, place
        self.written = block.thinking or ""
        self.signature = block.signature or ""


class AnthropicResponse:
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        self.ended = False
        self._model = model
        self._blocks: dict[int, _OpenBlock] = {}
        self._said = False
        self._stop: StopReason = "end"
        self._counts = AnthropicTokenCounts()

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        event = Event.from_json(data)
        if event.error is not None:
            raise StreamedError(ERROR_STATUS.get(event.error.type or "", 500))
        match event.type:
            case "message":
                return self._whole(AnthropicMessage.from_json(data))
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
        return []

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if not self.ended:
            raise Unavailable("llm.cut_off")
        for block in self._blocks.values():
            begun = block.begun
            if begun.type == "tool_use":
                whole = block.written or json.dumps(begun.input or {}, ensure_ascii=False)
                yield ToolCall(name=begun.name or "", arguments=whole, id=begun.id or "")
        yield from self._thoughts()
        yield StreamEnd(stop=self._stop, usage=self._usage())

    def _whole(self, message: AnthropicMessage) -> list[ModelPiece]:
        """Process the answer of a server that does not stream."""
        self.ended = True
        self._count(message.usage or AnthropicTokenCounts())
        self._stop = STOPS.get(message.stop_reason or "", "end")
        return [piece for index, block in enumerate(message.content) for piece in self._begin(index, block)]

    def _begin(self, index: int, block: AnthropicBlock) -> list[ModelPiece]:
        if block.type in ("tool_use", "thinking", "redacted_thinking"):
            called = sum(known.begun.type == "tool_use" for known in self._blocks.values())
            self._blocks[index] = _OpenBlock(block, self._said + called)
        return self._pieces(block.text if block.type == "text" else "", block.thinking)

    def _continue(self, index: int, delta: AnthropicDelta) -> list[ModelPiece]:
        if block := self._blocks.get(index):
            block.written += delta.partial_json or delta.thinking or ""
            block.signature += delta.signature or ""
        return self._pieces(delta.text, delta.thinking)

    def _pieces(self, text: str | None, thinking: str | None) -> list[ModelPiece]:
        self._said = self._said or bool(text and text.strip())
        return [
            *([ThinkingPiece(text=thinking)] if thinking else []),
            *([TextPiece(text=text)] if text else []),
        ]

    def _thoughts(self) -> Iterator[Thought]:
        """Yield thinking to send back later. Without a signature it is incomplete and would be refused."""
        for block in self._blocks.values():
            data: dict[str, JsonValue] = {"type": block.begun.type}
            if block.begun.type == "thinking" and block.signature:
                data["signature"] = block.signature
                yield Thought(model=self._model, text=block.written, data=data, place=block.place)
            elif block.begun.type == "redacted_thinking":
                data["data"] = block.begun.data or ""
                yield Thought(model=self._model, data=data, place=block.place)

    def _count(self, counts: AnthropicTokenCounts) -> None:
        """Merge token counts. The end repeats some counts of the start; the latest value counts."""
        self._counts = self._counts.model_copy(
            update={name: value for name, value in counts if value is not None}
        )

    def _usage(self) -> Usage:
        counts = self._counts
        read, written = counts.cache_read_input_tokens or 0, counts.cache_creation_input_tokens or 0
        details = counts.output_tokens_details or AnthropicOutputDetails()
        return Usage(
            input_tokens=(counts.input_tokens or 0) + read + written,
            cached_tokens=read,
            cache_written_tokens=written,
            output_tokens=counts.output_tokens or 0,
            thinking_tokens=details.thinking_tokens or 0,
        )
