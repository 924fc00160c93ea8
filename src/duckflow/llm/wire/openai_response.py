"""The pieces of an OpenAI-compatible answer, put together again."""

import json
from collections.abc import Iterator
from typing import Any

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import ModelPiece, StopReason, StreamEnd, ToolCall, Usage
from duckflow.llm.wire.lenient import LenientModel, StreamedError

STOPS: dict[str, StopReason] = {
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}


class OpenAIPart(LenientModel):
    """One part of a content given in parts; thinking has no `text`."""

    text: str | None = None


class Function(LenientModel):
    """What is called."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPart(LenientModel):
    """A piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function = Function()


class Message(LenientModel):
    """What the model said, whole or in part."""

    content: str | tuple[OpenAIPart, ...] | None = None
    refusal: str | None = None
    tool_calls: tuple[CallPart, ...] | None = None

    @property
    def text(self) -> str:
        """The readable part of it."""
        content = self.content or ""
        said = content if isinstance(content, str) else "".join(part.text or "" for part in content)
        return said + (self.refusal or "")


class OpenAIChoice(LenientModel):
    """The first of the answers is the only one asked for."""

    delta: Message | None = None
    message: Message | None = None
    finish_reason: str | None = None


class CachedTokens(LenientModel):
    """How much of the prompt was known."""

    cached_tokens: int | None = None


class OpenAITokenCounts(LenientModel):
    """Usage as this wire reports it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: CachedTokens | None = None


class Chunk(LenientModel):
    """One event of the stream, or the whole answer of a server that does not stream."""

    choices: tuple[OpenAIChoice, ...] | None = None
    usage: OpenAITokenCounts | None = None
    error: dict[str, Any] | str | None = None


class _OpenCall:
    """A tool call whose arguments are still coming."""

    def __init__(self, part: CallPart) -> None:
        self.index, self.id, self.name, self.arguments = part.index, part.id, "", ""

    def takes(self, part: CallPart) -> bool:
        """Whether a piece belongs to it; some servers give every call the index 0, but its own id."""
        return part.index == self.index and (not part.id or part.id == self.id) and part.index is not None

    def add(self, function: Function) -> None:
        self.name += function.name or ""
        arguments = function.arguments or ""
        self.arguments += (
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        )


class OpenAIResponse:
    """What has arrived so far."""

    def __init__(self) -> None:
        self.ended = False
        self._calls: list[_OpenCall] = []
        self._stop: StopReason | None = None
        self._usage = Usage()

    def add(self, data: str) -> str:
        """Take an event in; its text is returned."""
        if data.strip() == "[DONE]":  # that was all, even if no reason was given
            self.ended, self._stop = True, self._stop or "end"
            return ""
        chunk = Chunk.from_json(data)
        if chunk.error is not None:
            code = chunk.error.get("code") if isinstance(chunk.error, dict) else None
            raise StreamedError(code if isinstance(code, int) and code >= 400 else 500)
        return self.add_chunk(chunk)

    def add_chunk(self, chunk: Chunk) -> str:
        """Take a chunk in; its text is returned."""
        if chunk.usage is not None:
            self._count(chunk.usage)
        if not chunk.choices:
            return ""
        choice = chunk.choices[0]
        if choice.finish_reason == "error":
            raise Unavailable("llm.cut_off")
        if choice.finish_reason:
            self._stop = STOPS.get(choice.finish_reason, "end")
        message = choice.delta or choice.message or Message()
        for part in message.tool_calls or ():
            if not self._calls or not self._calls[-1].takes(part):
                self._calls.append(_OpenCall(part))
            self._calls[-1].add(part.function)
        if message.refusal:
            self._stop = "refusal"
        return message.text

    def rest(self) -> Iterator[ModelPiece]:
        """What can be told only at the end."""
        if self._stop is None:
            raise Unavailable("llm.cut_off")
        for call in self._calls:
            yield ToolCall(name=call.name, arguments=call.arguments or "{}")
        # Some servers say "stop" where they mean that they wait for the results.
        stop = "tool_calls" if self._calls and self._stop == "end" else self._stop
        yield StreamEnd(stop=stop, usage=self._usage)

    def _count(self, counts: OpenAITokenCounts) -> None:
        details = counts.prompt_tokens_details or CachedTokens()
        self._usage = Usage(
            input_tokens=counts.prompt_tokens or 0,
            cached_tokens=details.cached_tokens or 0,
            output_tokens=counts.completion_tokens or 0,
        )
