"""OpenAI's Responses API, for OpenAI itself and for compatible servers.

The provider stores nothing: each prompt includes the encrypted reasoning items.
"""

from bisect import bisect
from collections.abc import Iterator

from pydantic import JsonValue

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, Thought, ToolCall, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.client import WireFormat, WireResponse
from duckflow.llm.wire.fallbacks import Body, Fallback
from duckflow.llm.wire.json_fields import JsonFields, StreamedError
from duckflow.llm.wire.request import (
    answer_room,
    bearer,
    cache_marks,
    leading_system,
    pictures_of,
    usable_messages,
)

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}

ERROR_STATUS = (("rate_limit", 429), ("quota", 429), ("invalid", 400), ("context", 400), ("unsupported", 400))
"""HTTP status by a part of the code of an error inside a stream; 500 if none matches."""

DELTAS = ("response.output_text.delta", "response.refusal.delta")
THINKING_DELTAS = ("response.reasoning_summary_text.delta", "response.reasoning_text.delta")

_GPT = lazy_regex(r"gpt-(\d+)(?:\.(\d+))?(?!-chat|\d)")
_O_SERIES = lazy_regex(r"o\d")


def _body(endpoint: Endpoint, traits: ModelTraits, request: ModelRequest) -> Body:
    name = endpoint.model.rpartition("/")[2]
    version = _version(name)
    thinks = version >= (5, 0) or bool(_O_SERIES.match(name))
    messages = usable_messages(request, traits.name)
    marks = cache_marks(messages) if version >= (5, 6) else set[int]()
    system = leading_system(messages)
    body: Body = {
        "model": endpoint.model,
        "input": [
            item
            for place, message in enumerate(messages)
            for item in _items(
                message, request, "system" if place < system else "user", marked=place in marks
            )
        ],
        "stream": True,
        "store": False,
        "max_output_tokens": answer_room(traits, request),
    }
    if thinks or endpoint.own:
        body["include"] = ["reasoning.encrypted_content"]
    if thinks or request.effort is not None:
        effort = {"effort": request.effort} if request.effort is not None else {}
        # Each prompt ends with a user message, after which earlier reasoning would be dropped by default.
        context = {"context": "all_turns"} if version >= (5, 4) else {}
        body["reasoning"] = {**effort, "summary": "auto", **context}
    if marks:
        body["prompt_cache_options"] = {"mode": "explicit"}
    if request.cache_key:
        body["prompt_cache_key"] = request.cache_key
    if request.temperature is not None and not thinks:
        body["temperature"] = request.temperature
    if request.answer_schema is not None and traits.small:
        schema = {"name": request.output, "schema": request.answer_schema, "strict": False}
        body["text"] = {"format": {"type": "json_schema", **schema}}
    if request.tools:
        body["tools"] = [{"type": "function", **tool.model_dump(), "strict": False} for tool in request.tools]
    return body


def _version(name: str) -> tuple[int, int]:
    found = _GPT.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _items(message: ChatMessage, request: ModelRequest, asker: str, *, marked: bool) -> Iterator[Body]:
    """Yield a message's items. Reasoning and the item after it keep ids, as OpenAI refuses either alone."""
    if message.result_of:
        output = _content(message, request, marked=marked)
        yield {"type": "function_call_output", "call_id": message.result_of, "output": output}
        return
    if message.role != "assistant":
        if message.text or message.pictures:
            yield {"role": asker, "content": _content(message, request, marked=marked)}
        return
    said: list[Body] = [{"role": "assistant", "content": message.text}] if message.text.strip() else []
    called: list[Body] = [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    for place, part in enumerate([*said, *called]):
        for data in (thought.data for thought in message.thoughts if thought.place == place):
            if data.get("type") == "reasoning":
                yield dict(data)
            else:
                part |= {name: value for name, value in data.items() if name != "type"}
        if part.get("id") and "role" in part:
            text: Body = {"type": "output_text", "text": message.text, "annotations": []}
            part |= {"type": "message", "status": "completed", "content": [text]}
        yield part


def _content(message: ChatMessage, request: ModelRequest, *, marked: bool) -> str | list[Body]:
    parts: list[Body] = [
        {"type": "input_image", "image_url": f"data:{media};base64,{data}"}
        for media, data in pictures_of(message, request)
    ]
    if not parts and not marked:
        return message.text
    return [*parts, {"type": "input_text", "text": message.text, **(MARK if marked else {})}]


def _unmarked(body: Body) -> Body:
    """Remove the cache marks; the provider then caches automatically."""
    rest = {name: value for name, value in body.items() if name != "prompt_cache_options"}
    items: list[Body] = []
    for item in body["input"]:
        changed = dict(item)
        for field in ("content", "output"):
            if isinstance(item.get(field), list):
                changed[field] = [
                    {name: value for name, value in part.items() if name not in MARK} for part in item[field]
                ]
        items.append(changed)
    return {**rest, "input": items}


def _without_reasoning(body: Body) -> Body:
    items = [
        {name: value for name, value in item.items() if name not in ("id", "status")}
        for item in body["input"]
        if item.get("type") != "reasoning"
    ]
    return {**body, "input": items}


class ResponsesResponse(WireResponse):
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        super().__init__(model)
        self._items: list[JsonFields] = []
        self._places: list[int] = []
        self._arguments: dict[str, str] = {}
        self._streamed = False

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
            return self._pieces(text)
        if kind in THINKING_DELTAS and (text := event.text("delta")):
            return self._pieces("", text)
        match kind:
            case "response.reasoning_summary_part.added" if event.count("summary_index"):
                return self._pieces("", "\n\n")
            case "response.function_call_arguments.delta":
                return self._pieces("", "", event.text("delta"))
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

    def _parts(self) -> Iterator[ModelPiece]:
        for call in (item for item in self._items if item.text("type") == "function_call"):
            known = call.text("id")
            arguments = call.json("arguments") or self._arguments.get(known) or "{}"
            yield ToolCall(name=call.text("name"), arguments=arguments, id=call.text("call_id") or known)
        yield from self._thoughts()

    def _end(self, response: JsonFields) -> list[ModelPiece]:
        """Process the end of the answer, which repeats all of it. Return any text that was not streamed."""
        status = response.text("status")
        if status in ("failed", "cancelled") or response.values.get("error"):
            raise _failure(response.inner("error").values)
        if response.values.get("output") is None or status in ("queued", "in_progress"):
            raise ValueError(f"status {status}")
        self.ended = self.finished = True
        self._usage = _usage(response.inner("usage"))
        if status == "incomplete":
            reason = response.inner("incomplete_details").text("reason")
            self._stop = "refusal" if reason == "content_filter" else "length"
        self._items = self._items or response.objects("output")
        if any(part.text("refusal") for item in self._items for part in item.objects("content")):
            self._stop = "refusal"
        if self._streamed:
            return []
        return [piece for item in self._items for piece in self._pieces(_message(item))]

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
                if called or unsaid:  # reasoning before a second text is dropped, since all texts become one
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
    code, message = str(failure.get("code") or failure.get("type") or ""), failure.get("message") or ""
    if code.isdigit() and int(code) >= 400:
        status = int(code)
    else:
        status = next((status for part, status in ERROR_STATUS if part in code), 500)
    return StreamedError(status, f"{message} ({code})" if code else str(message))


FALLBACKS = (
    Fallback("text", ("text.format", "json_schema", "json schema", "response_format")),
    Fallback("temperature", ("temperature",)),
    Fallback("prompt_cache_options", ("breakpoint", "prompt_cache_options"), _unmarked),
    Fallback("prompt_cache_key", ("prompt_cache_key",)),
    Fallback("include", ("include", "encrypted content is not supported")),
    Fallback("reasoning.summary", ("summar",)),
    Fallback("reasoning.context", ("reasoning.context", "all_turns")),
    Fallback("reasoning.effort", ("effort",)),
    Fallback("input", ("'reasoning'", "item with id", "encrypted"), _without_reasoning, lasting=False),
    Fallback("reasoning", ("reasoning", "think")),
    Fallback("max_output_tokens", ("max_output_tokens",)),
)

RESPONSES = WireFormat("/responses", bearer, _body, ResponsesResponse, FALLBACKS)
