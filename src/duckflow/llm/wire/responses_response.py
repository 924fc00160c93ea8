"""Assemble a Responses answer from its events."""

from bisect import bisect
from collections.abc import Iterator

from pydantic import JsonValue

from duckflow.domain.errors import Unavailable
from duckflow.domain.frozen import replace
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

ERROR_STATUS = (("rate_limit", 429), ("quota", 429), ("invalid", 400), ("context", 400), ("unsupported", 400))
"""HTTP status by a part of the code of an error inside a stream; 500 if none matches."""

DELTAS = ("response.output_text.delta", "response.refusal.delta")
THINKING_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class ResponsesResponse:
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        self.ended = False
        self._model = model
        self._items: list[JsonFields] = []
        self._places: list[int] = []
        self._arguments: dict[str, str] = {}
        self._streamed = False
        self._stop: StopReason = "end"
        self._usage = Usage()

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        if data.strip() == "[DONE]":
            return []
        event = JsonFields.parse(data)
        kind = event.text("type")
        if kind == "error" or event.inner("error").values:
            raise _failure(event.inner("error").values or {**event.values, "type": None})
        if not kind:  # the answer of a server that does not stream
            return self._end(event)
        if kind in DELTAS and (text := event.text("delta")):
            self._streamed = True
            return [TextPiece(text=text)]
        if kind in THINKING_DELTAS and (text := event.text("delta")):
            return [ThinkingPiece(text=text)]
        match kind:
            case "response.reasoning_summary_part.added" if event.count("summary_index"):
                return [ThinkingPiece(text="\n\n")]
            case "response.function_call_arguments.done":
                self._arguments[event.text("item_id")] = event.text("arguments")
            case "response.output_item.done":
                # Some servers finish the text before the thinking that precedes it.
                at = bisect(self._places, event.count("output_index"))
                self._places.insert(at, event.count("output_index"))
                self._items.insert(at, event.inner("item"))
            case "response.completed" | "response.incomplete" | "response.failed":
                return self._end(event.inner("response"))
            case _:
                pass
        return []

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if not self.ended:
            raise Unavailable("llm.cut_off")
        calls = [item for item in self._items if item.text("type") == "function_call"]
        for call in calls:
            known = call.text("id")
            arguments = call.json("arguments") or self._arguments.get(known) or "{}"
            yield ToolCall(name=call.text("name"), arguments=arguments, id=call.text("call_id") or known)
        yield from self._thoughts()
        if any(part.text("refusal") for item in self._items for part in item.objects("content")):
            self._stop = "refusal"
        stop = "tool_calls" if calls and self._stop == "end" else self._stop
        yield StreamEnd(stop=stop, usage=self._usage)

    def _end(self, response: JsonFields) -> list[ModelPiece]:
        """Process the end of the answer, which repeats all of it. Return any text that was not streamed."""
        status = response.text("status")
        if status in ("failed", "cancelled") or response.values.get("error"):
            raise _failure(response.inner("error").values)
        if response.values.get("output") is None or status in ("queued", "in_progress"):
            raise ValueError(f"status {status}")
        self.ended = True
        self._usage = _usage(response.inner("usage"))
        if status == "incomplete":
            reason = response.inner("incomplete_details").text("reason")
            self._stop = "refusal" if reason == "content_filter" else "length"
        self._items = self._items or response.objects("output")
        if self._streamed:
            return []
        return [TextPiece(text=text) for text in map(_message, self._items) if text]

    def _thoughts(self) -> Iterator[Thought]:
        """Yield the reasoning, and the ids and phases of the items that it is bound to."""
        reasoned = any(item.text("type") == "reasoning" for item in self._items)
        said = any(map(_message, self._items))
        place, unsaid = int(said), said
        waiting: list[Thought] = []
        for item in self._items:
            kind = item.text("type")
            called = kind == "function_call"
            if kind == "reasoning":
                kept: dict[str, JsonValue] = {
                    name: value
                    for name, value in item.values.items()
                    if value is not None and name != "status"
                }
                waiting.append(Thought(model=self._model, text=_readable(item), data=kept))
            elif called or _message(item):
                if called or unsaid:  # all texts become one message; reasoning for a later text has no place
                    named = {"id": item.text("id") if reasoned else "", "phase": item.text("phase")}
                    label = {name: value for name, value in named.items() if value}
                    labels = [Thought(model=self._model, data={"type": kind, **label})] if label else []
                    at = place if called else 0
                    yield from (replace(thought, place=at) for thought in (*waiting, *labels))
                waiting = []
                place, unsaid = place + called, unsaid and called
        yield from (replace(thought, place=place) for thought in waiting)


def _message(item: JsonFields) -> str:
    """Return the text of a message, including refusals; empty for other items."""
    if item.text("type") != "message":
        return ""
    return "".join(part.text("text") or part.text("refusal") for part in item.objects("content"))


def _readable(item: JsonFields) -> str:
    """Return the readable part of reasoning."""
    parts = item.objects("summary") or item.objects("content")
    return "\n\n".join(part.text("text") for part in parts if part.text("text"))


def _usage(counts: JsonFields) -> Usage:
    read = counts.inner("input_tokens_details")
    return Usage(
        input_tokens=counts.count("input_tokens"),
        cached_tokens=read.count("cached_tokens"),
        cache_written_tokens=read.count("cache_write_tokens"),
        output_tokens=counts.count("output_tokens"),
        thinking_tokens=counts.inner("output_tokens_details").count("reasoning_tokens"),
    )


def _failure(failure: dict[str, JsonValue]) -> StreamedError:
    """Convert an error inside an answer to a StreamedError with the HTTP status that fits its code."""
    code, message = str(failure.get("code") or failure.get("type") or ""), failure.get("message") or ""
    if code.isdigit() and int(code) >= 400:
        status = int(code)
    else:
        status = next((status for part, status in ERROR_STATUS if part in code), 500)
    return StreamedError(status, f"{message} ({code})" if code else str(message))
