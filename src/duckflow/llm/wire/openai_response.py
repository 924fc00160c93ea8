"""Assemble an OpenAI-compatible answer from its chunks."""

from collections.abc import Iterator
from typing import cast

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
from duckflow.llm.wire.json_fields import JsonFields, StreamedError

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


def _usage(counts: JsonFields) -> Usage:
    read = counts.inner("prompt_tokens_details")
    return Usage(
        input_tokens=counts.count("prompt_tokens"),
        cached_tokens=read.count("cached_tokens")
        or counts.count("cached_tokens")
        or counts.count("num_cached_tokens"),  # Mistral's name
        cache_written_tokens=read.count("cache_write_tokens"),
        output_tokens=counts.count("completion_tokens"),
        thinking_tokens=counts.inner("completion_tokens_details").count("reasoning_tokens"),
    )


def _status(error: JsonValue) -> int:
    """Return the HTTP status of an error inside a stream: `code`, or `status_code` with Groq, else 500."""
    said = (error.get("code"), error.get("status_code")) if isinstance(error, dict) else ()
    return next((status for status in said if isinstance(status, int) and status >= 400), 500)


class _OpenCall:
    """Tool call whose arguments are still arriving."""

    def __init__(self, part: JsonFields) -> None:
        self._index = part.values.get("index")
        self.id, self.name, self.arguments = part.text("id"), "", ""
        self.extra = part.inner("extra_content").values
        """Gemini's thought signature, from Google's OpenAI-compatible server."""

    def takes(self, part: JsonFields) -> bool:
        """Return True if a piece belongs to this call; some servers always send index 0, but distinct ids."""
        index = part.values.get("index")
        return index == self._index and index is not None and part.text("id") in ("", self.id)

    def add(self, function: JsonFields) -> None:
        self.name += function.text("name")
        self.arguments += function.json("arguments")


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
        chunk = JsonFields.parse(data)
        if (error := chunk.values.get("error")) is not None:
            raise StreamedError(_status(error))
        return self.add_chunk(chunk)

    def add_chunk(self, chunk: JsonFields) -> list[ModelPiece]:
        """Process a chunk, and return its text and thinking."""
        counts = chunk.inner("usage").values or chunk.inner("x_groq").inner("usage").values
        if counts:
            self._usage = _usage(JsonFields(counts))
        choices = chunk.objects("choices")
        if not choices:
            return []
        choice = choices[0]
        reason, delta, whole = choice.text("finish_reason"), choice.inner("delta"), choice.inner("message")
        if reason == "error":
            raise Unavailable("llm.cut_off")
        message = delta if delta.values else whole
        if reason or whole.values:
            self._stop = STOPS.get(reason, "end")
        for part in message.objects("tool_calls"):
            if not self._calls or not self._calls[-1].takes(part):
                self._calls.append(_OpenCall(part))
            self._calls[-1].add(part.inner("function"))
        refusal = message.text("refusal")
        if refusal:
            self._stop = "refusal"
        text = message.joined("content") + refusal
        self._said = self._said or bool(text.strip())
        thinking = self._think(message)
        return [
            *([ThinkingPiece(text=thinking)] if thinking else []),
            *([TextPiece(text=text)] if text else []),
        ]

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if self._stop is None:
            raise Unavailable("llm.cut_off")
        for call in self._calls:
            yield ToolCall(name=call.name, arguments=call.arguments or "{}", id=call.id)
        yield from self._thoughts()
        # Some servers send "stop" instead of "tool_calls".
        stop = "tool_calls" if self._calls and self._stop == "end" else self._stop
        yield StreamEnd(stop=stop, usage=self._usage)

    def _think(self, message: JsonFields) -> str:
        """Return the thinking in a message, and store it by the field in which it arrived."""
        parts = message.values.get("content")
        found = {
            "reasoning_content": message.text("reasoning_content"),
            "reasoning": message.text("reasoning"),
            "thinking": message.joined("content", "thinking") if isinstance(parts, list) else "",
        }
        for field, text in found.items():
            if text:
                self._thinking[field] = self._thinking.get(field, "") + text
        details = message.objects("reasoning_details")
        for detail in details:
            self._add_detail(detail.values)
        shown = "".join(detail.text("text") or detail.text("summary") for detail in details)
        return next((text for text in found.values() if text), shown)

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
