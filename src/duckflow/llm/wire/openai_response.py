"""Assemble an OpenAI-compatible answer from its chunks."""

import json
from collections.abc import Iterator
from typing import Any, cast

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
    "length": "length",
    "model_length": "length",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "content_filter": "refusal",
}

THINKING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning", "thinking")
"""Fields in which servers send thinking; "thinking" is inside the parts of the content.

A server that uses several fields gets only the first of them back.
"""


class OpenAIPart(LenientModel):
    """Part of a message's content."""

    text: str | None = None
    thinking: "str | tuple[OpenAIPart, ...] | None" = None


class Function(LenientModel):
    """Called function and its arguments."""

    name: str | None = None
    arguments: str | dict[str, Any] | None = None


class CallPart(LenientModel):
    """Piece of a tool call."""

    index: int | None = None
    id: str | None = None
    function: Function = Function()
    extra_content: dict[str, JsonValue] | None = None
    """Gemini's thought signature, from Google's OpenAI-compatible server."""


class Message(LenientModel):
    """Text, thinking and calls of the model, complete or a part of them."""

    content: str | tuple[OpenAIPart, ...] | None = None
    refusal: str | None = None
    reasoning_content: str | None = None
    reasoning: str | None = None
    reasoning_details: tuple[dict[str, JsonValue], ...] | None = None
    tool_calls: tuple[CallPart, ...] | None = None

    @property
    def text(self) -> str:
        """Return the text of the content and of a refusal."""
        content = self.content or ""
        said = content if isinstance(content, str) else "".join(part.text or "" for part in content)
        return said + (self.refusal or "")

    @property
    def thinking(self) -> str:
        """Return the thinking in the parts of the content."""
        return "" if isinstance(self.content, str) else "".join(_thought(part) for part in self.content or ())


def _thought(part: OpenAIPart) -> str:
    thinking = part.thinking or ""
    return thinking if isinstance(thinking, str) else "".join(inner.text or "" for inner in thinking)


class OpenAIChoice(LenientModel):
    """One of the answers; we only request one."""

    delta: Message | None = None
    message: Message | None = None
    finish_reason: str | None = None


class TokenDetails(LenientModel):
    """Prompt tokens read from and written to a cache, and thinking tokens of the answer."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class OpenAITokenCounts(LenientModel):
    """Usage as this wire reports it."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    num_cached_tokens: int | None = None
    """Mistral's name for `cached_tokens`."""
    prompt_tokens_details: TokenDetails | None = None
    completion_tokens_details: TokenDetails | None = None

    @property
    def usage(self) -> Usage:
        """Return the counts as our Usage."""
        details = self.prompt_tokens_details or TokenDetails()
        thought = self.completion_tokens_details or TokenDetails()
        return Usage(
            input_tokens=self.prompt_tokens or 0,
            cached_tokens=details.cached_tokens or self.cached_tokens or self.num_cached_tokens or 0,
            cache_written_tokens=details.cache_write_tokens or 0,
            output_tokens=self.completion_tokens or 0,
            thinking_tokens=thought.reasoning_tokens or 0,
        )


class GroqExtra(LenientModel):
    """Groq's extra field of a chunk."""

    usage: OpenAITokenCounts | None = None


class Chunk(LenientModel):
    """Event of the stream, or the whole answer of a server that does not stream."""

    choices: tuple[OpenAIChoice, ...] | None = None
    usage: OpenAITokenCounts | None = None
    x_groq: GroqExtra | None = None
    error: dict[str, Any] | str | None = None


def _status(error: dict[str, Any] | str) -> int:
    """Return the HTTP status of an error inside a stream: `code`, or `status_code` with Groq, else 500."""
    said = (error.get("code"), error.get("status_code")) if isinstance(error, dict) else ()
    return next((status for status in said if isinstance(status, int) and status >= 400), 500)


class _OpenCall:
    """Tool call whose arguments are still arriving."""

    def __init__(self, part: CallPart) -> None:
        self.index, self.id, self.name, self.arguments = part.index, part.id, "", ""
        self.extra = part.extra_content

    def takes(self, part: CallPart) -> bool:
        """Return True if a piece belongs to this call; some servers always send index 0, but distinct ids."""
        return part.index == self.index and (not part.id or part.id == self.id) and part.index is not None

    def add(self, function: Function) -> None:
        self.name += function.name or ""
        arguments = function.arguments or ""
        self.arguments += (
            arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
        )


class OpenAIResponse:
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        self.ended = False
        self._model = model
        self._calls: list[_OpenCall] = []
        self._thinking: dict[str, str] = {}
        self._details: list[dict[str, JsonValue]] = []
        self._said = False
        self._stop: StopReason | None = None
        self._usage = Usage()

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        if data.strip() == "[DONE]":  # the end, even without a finish_reason
            self.ended, self._stop = True, self._stop or "end"
            return []
        chunk = Chunk.from_json(data)
        if chunk.error is not None:
            raise StreamedError(_status(chunk.error))
        return self.add_chunk(chunk)

    def add_chunk(self, chunk: Chunk) -> list[ModelPiece]:
        """Process a chunk, and return its text and thinking."""
        counts = chunk.usage or (chunk.x_groq and chunk.x_groq.usage)
        if counts is not None:
            self._usage = counts.usage
        if not chunk.choices:
            return []
        choice = chunk.choices[0]
        if choice.finish_reason == "error":
            raise Unavailable("llm.cut_off")
        message = choice.delta or choice.message or Message()
        if choice.finish_reason or choice.message is not None:
            self._stop = STOPS.get(choice.finish_reason or "", "end")
        for part in message.tool_calls or ():
            if not self._calls or not self._calls[-1].takes(part):
                self._calls.append(_OpenCall(part))
            self._calls[-1].add(part.function)
        if message.refusal:
            self._stop = "refusal"
        self._said = self._said or bool(message.text.strip())
        thinking = self._think(message)
        return [
            *([ThinkingPiece(text=thinking)] if thinking else []),
            *([TextPiece(text=message.text)] if message.text else []),
        ]

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if self._stop is None:
            raise Unavailable("llm.cut_off")
        for call in self._calls:
            yield ToolCall(name=call.name, arguments=call.arguments or "{}", id=call.id or "")
        yield from self._thoughts()
        # Some servers send "stop" instead of "tool_calls".
        stop = "tool_calls" if self._calls and self._stop == "end" else self._stop
        yield StreamEnd(stop=stop, usage=self._usage)

    def _think(self, message: Message) -> str:
        """Return the thinking in a message, and store it by the field in which it arrived."""
        found = {
            "reasoning_content": message.reasoning_content,
            "reasoning": message.reasoning,
            "thinking": message.thinking,
        }
        for field, text in found.items():
            if text:
                self._thinking[field] = self._thinking.get(field, "") + text
        for detail in message.reasoning_details or ():
            self._add_detail(detail)
        details = "".join(
            str(detail.get("text") or detail.get("summary") or "")
            for detail in message.reasoning_details or ()
        )
        return next((text for text in found.values() if text), details)

    def _add_detail(self, detail: dict[str, JsonValue]) -> None:
        """Join fragments of OpenRouter's `reasoning_details` that have the same type and index."""
        last = self._details[-1] if self._details else {}
        if not last or any(last.get(name) != detail.get(name) for name in ("type", "index")):
            self._details.append(dict(detail))
            return
        for name, value in detail.items():
            held = last.get(name)
            if name in ("text", "summary", "data") and isinstance(held, str) and isinstance(value, str):
                last[name] = held + value
            elif value:
                last[name] = value

    def _thoughts(self) -> Iterator[Thought]:
        if not self._model:
            return
        field = next((field for field in THINKING_FIELDS if self._thinking.get(field)), "")
        text = self._thinking.get(field, "")
        if self._details:
            field = "reasoning_details"
            data: dict[str, JsonValue] = {"details": cast("list[JsonValue]", self._details)}
            yield Thought(model=self._model, text=text, data={"field": field, **data})
        elif text:
            yield Thought(model=self._model, text=text, data={"field": field})
        for place, call in enumerate(self._calls, start=int(self._said)):
            if call.extra:
                data = {"field": "extra_content", "extra": call.extra}
                yield Thought(model=self._model, data=data, place=place)
