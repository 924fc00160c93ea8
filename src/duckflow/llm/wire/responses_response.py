"""Assemble a Responses answer from its events."""

import json
from bisect import bisect
from collections.abc import Iterator
from typing import Any

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
from duckflow.llm.wire.lenient import LenientModel, StreamedError

ERROR_STATUS = (("rate_limit", 429), ("quota", 429), ("invalid", 400), ("context", 400), ("unsupported", 400))
"""HTTP status by a part of the code of an error inside a stream; 500 if none matches."""

DELTAS = ("response.output_text.delta", "response.refusal.delta")
THINKING_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")


class ResponsesPart(LenientModel):
    """Part of a message, of a summary, or of plain reasoning."""

    type: str = ""
    text: str | None = None
    refusal: str | None = None


class ResponsesItem(LenientModel):
    """Item of the answer: a message, a call, or reasoning."""

    type: str = ""
    id: str | None = None
    phase: str | None = None
    content: tuple[ResponsesPart, ...] | None = None
    summary: tuple[ResponsesPart, ...] | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | dict[str, Any] | None = None

    @property
    def said(self) -> str:
        """Return the text of a message, including refusals."""
        return "".join(part.text or part.refusal or "" for part in self.content or ())

    @property
    def readable(self) -> str:
        """Return the readable part of reasoning."""
        return "\n\n".join(part.text for part in self.summary or self.content or () if part.text)


class ResponsesInputDetails(LenientModel):
    """Prompt tokens read from the cache and written to it."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class ResponsesOutputDetails(LenientModel):
    """Thinking tokens within the output."""

    reasoning_tokens: int | None = None


class ResponsesTokenCounts(LenientModel):
    """Usage as this wire reports it."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    input_tokens_details: ResponsesInputDetails | None = None
    output_tokens_details: ResponsesOutputDetails | None = None


class ResponsesFailure(LenientModel):
    """Reason for a failed or incomplete answer."""

    code: str | int | None = None
    type: str | None = None
    message: str | None = None
    reason: str | None = None


class Response(LenientModel):
    """Complete answer."""

    object: str | None = None
    status: str | None = None
    output: tuple[dict[str, JsonValue], ...] | None = None
    usage: ResponsesTokenCounts | None = None
    error: ResponsesFailure | None = None
    incomplete_details: ResponsesFailure | None = None


class ResponsesEvent(LenientModel):
    """Event of the stream."""

    type: str = ""
    delta: str | None = None
    item_id: str | None = None
    output_index: int = 0
    arguments: str | None = None
    summary_index: int = 0
    item: dict[str, Any] | None = None
    response: Response | None = None
    error: ResponsesFailure | None = None
    code: str | int | None = None
    message: str | None = None


class ResponsesResponse:
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        self.ended = False
        self._model = model
        self._items: list[dict[str, JsonValue]] = []
        self._places: list[int] = []
        self._arguments: dict[str, str] = {}
        self._streamed = False
        self._stop: StopReason = "end"
        self._counts = ResponsesTokenCounts()

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        if data.strip() == "[DONE]":
            return []
        event = ResponsesEvent.from_json(data)
        if event.type == "error" or event.error is not None:
            raise _failure(event.error or ResponsesFailure(code=event.code, message=event.message))
        if not event.type:  # the answer of a server that does not stream
            return self._end(Response.from_json(data))
        if event.type in DELTAS and event.delta:
            self._streamed = True
            return [TextPiece(text=event.delta)]
        if event.type in THINKING_DELTAS and event.delta:
            return [ThinkingPiece(text=event.delta)]
        match event.type:
            case "response.reasoning_summary_part.added" if event.summary_index:
                return [ThinkingPiece(text="\n\n")]
            case "response.function_call_arguments.done" if event.item_id and event.arguments:
                self._arguments[event.item_id] = event.arguments
            case "response.output_item.done" if event.item:
                # Some servers finish the text before the thinking that precedes it.
                at = bisect(self._places, event.output_index)
                self._places.insert(at, event.output_index)
                self._items.insert(at, event.item)
            case "response.completed" | "response.incomplete" | "response.failed" if event.response:
                return self._end(event.response)
            case _:
                pass
        return []

    def rest(self) -> Iterator[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        if not self.ended:
            raise Unavailable("llm.cut_off")
        items = [(data, ResponsesItem.model_validate(data)) for data in self._items]
        calls = [item for _, item in items if item.type == "function_call"]
        for call in calls:
            written = call.arguments or self._arguments.get(call.id or "") or "{}"
            whole = written if isinstance(written, str) else json.dumps(written, ensure_ascii=False)
            yield ToolCall(name=call.name or "", arguments=whole, id=call.call_id or call.id or "")
        yield from self._thoughts(items)
        if any(part.refusal for _, item in items for part in item.content or ()):
            self._stop = "refusal"
        stop = "tool_calls" if calls and self._stop == "end" else self._stop
        yield StreamEnd(stop=stop, usage=self._usage())

    def _end(self, response: Response) -> list[ModelPiece]:
        """Process the end of the answer, which repeats all of it. Return any text that was not streamed."""
        if response.status in ("failed", "cancelled") or response.error is not None:
            raise _failure(response.error or ResponsesFailure())
        if response.output is None or response.status in ("queued", "in_progress"):
            raise ValueError(f"status {response.status}")
        self.ended = True
        self._counts = response.usage or ResponsesTokenCounts()
        if response.status == "incomplete":
            details = response.incomplete_details or ResponsesFailure()
            self._stop = "refusal" if details.reason == "content_filter" else "length"
        self._items = self._items or list(response.output or ())
        if self._streamed:
            return []
        whole = [ResponsesItem.model_validate(item) for item in self._items]
        texts = [item.said for item in whole if item.type == "message" and item.said]
        return [TextPiece(text=text) for text in texts]

    def _thoughts(self, items: list[tuple[dict[str, JsonValue], ResponsesItem]]) -> Iterator[Thought]:
        """Yield the reasoning, and the ids and phases of the items that it is bound to."""
        reasoned = any(item.type == "reasoning" for _, item in items)
        said = any(item.type == "message" and item.said for _, item in items)
        place, unsaid = int(said), said
        waiting: list[Thought] = []
        for data, item in items:
            if item.type == "reasoning":
                kept: dict[str, JsonValue] = {
                    name: value for name, value in data.items() if value is not None and name != "status"
                }
                waiting.append(Thought(model=self._model, text=item.readable, data=kept))
            elif item.type == "function_call" or (item.type == "message" and item.said):
                called = item.type == "function_call"
                if called or unsaid:  # all texts become one message; reasoning for a later text has no place
                    named = {"id": item.id if reasoned else None, "phase": item.phase}
                    label = {name: value for name, value in named.items() if value}
                    labels = [Thought(model=self._model, data={"type": item.type, **label})] if label else []
                    at = place if called else 0
                    yield from (replace(thought, place=at) for thought in (*waiting, *labels))
                waiting = []
                place, unsaid = place + called, unsaid and called
        yield from (replace(thought, place=place) for thought in waiting)

    def _usage(self) -> Usage:
        counts = self._counts
        read = counts.input_tokens_details or ResponsesInputDetails()
        thought = counts.output_tokens_details or ResponsesOutputDetails()
        return Usage(
            input_tokens=counts.input_tokens or 0,
            cached_tokens=read.cached_tokens or 0,
            cache_written_tokens=read.cache_write_tokens or 0,
            output_tokens=counts.output_tokens or 0,
            thinking_tokens=thought.reasoning_tokens or 0,
        )


def _failure(failure: ResponsesFailure) -> StreamedError:
    """Convert an error inside an answer to a StreamedError with the HTTP status that fits its code."""
    code = f"{failure.code or failure.type or ''}"
    if code.isdigit() and int(code) >= 400:
        status = int(code)
    else:
        status = next((status for part, status in ERROR_STATUS if part in code), 500)
    return StreamedError(status, f"{failure.message or ''} ({code})" if code else failure.message or "")
