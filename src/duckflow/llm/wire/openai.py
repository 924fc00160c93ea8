"""OpenAI-compatible chat completions, the format of most servers. OpenAI itself uses `responses`."""

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import cast

from pydantic import JsonValue

from duckflow.domain.errors import Unavailable
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, Thought, ToolCall, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.client import STOPS, WireFormat, WireResponse
from duckflow.llm.wire.fallbacks import Body, Fallback
from duckflow.llm.wire.json_fields import JsonFields, StreamedError
from duckflow.llm.wire.request import (
    CHAT_ID,
    answer_room,
    bearer,
    cache_marks,
    leading_system,
    pictures_of,
    usable_messages,
)

_MISTRAL_ID = lazy_regex(r"[a-zA-Z0-9]{9}")

MARKED_MODELS = ("anthropic/", "google/", "openai/gpt-5.6", "openai/gpt-6", "openai/gpt-7")
"""OpenRouter models whose prompt cache needs marks, or works better with them."""

MISTRAL_EFFORTS = {"low": "none", "medium": "high", "high": "high"}
"""Mistral's thinking level for each effort. Its models only know off and on, and refuse other levels."""

THINKING_FIELDS = ("reasoning_details", "reasoning_content", "reasoning", "thinking")
"""Fields in which servers send thinking ("thinking" inside the content). The first with text is sent back."""

THINKING_MISSED = (
    "must be passed back",
    "reasoning_content is missing",
    "missing `reasoning_content`",
    "missing reasoning_content",
)
"""Words in the errors of servers that require an answer's thinking to be sent back."""


def _body(endpoint: Endpoint, traits: ModelTraits, request: ModelRequest) -> Body:
    provider = endpoint.provider.name
    body: Body = {
        "model": endpoint.model,
        "messages": turns(
            request,
            traits.name,
            marks=provider == "openrouter" and endpoint.model.startswith(MARKED_MODELS),
            short_ids=provider == "mistral",
        ),
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": answer_room(traits, request),
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.effort is not None:
        effort = MISTRAL_EFFORTS[request.effort] if provider == "mistral" else request.effort
        body |= (
            {"reasoning": {"effort": effort}} if provider == "openrouter" else {"reasoning_effort": effort}
        )
    if request.cache_key and provider == "mistral":
        body["prompt_cache_key"] = request.cache_key
    # Large models need room around the JSON for raw blocks; small ones need the schema to stay on track.
    if request.answer_schema is not None and traits.small:
        schema = {"name": request.output, "schema": request.answer_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.tools:
        body["tools"] = [{"type": "function", "function": tool.model_dump()} for tool in request.tools]
    return body


def turns(
    request: ModelRequest, model: str = "", *, marks: bool = False, short_ids: bool = False
) -> list[Body]:
    """Return one entry per turn. Many chat templates refuse repeated roles and late system messages."""
    messages = usable_messages(request, model, fitting_id=_MISTRAL_ID if short_ids else CHAT_ID)
    system = leading_system(messages)
    marked = cache_marks(messages) if marks else set[int]()

    def kind(place: int) -> tuple[str, int]:
        message = messages[place]
        if message.result_of:
            return "tool", place
        return "user" if message.role == "system" and place >= system else message.role, 0

    entries: list[Body] = []
    shown: list[Body] = []  # pictures of tool results, which are allowed only in user messages
    for (role, _), places in groupby(range(len(messages)), key=kind):
        turn = [(messages[place], place in marked) for place in places]
        pictures = [picture for message, _ in turn for picture in _pictures(message, request)]
        if role == "tool":
            shown += pictures
            entries.append(
                {
                    "role": "tool",
                    "tool_call_id": turn[0][0].result_of,
                    "content": _content(turn, []),
                }
            )
            continue
        if role == "assistant":
            if shown:
                entries.append({"role": "user", "content": shown})
            entries.append(_answer([message for message, _ in turn]))
        else:
            entries.append({"role": role, "content": _content(turn, [*shown, *pictures])})
        shown = []
    return [*entries, {"role": "user", "content": shown}] if shown else entries


def _content(turn: Sequence[tuple[ChatMessage, bool]], pictures: list[Body]) -> str | list[Body]:
    """Return the content as text, or as parts if it has pictures or marks: many servers accept only text."""
    if not pictures and not any(marked for _, marked in turn):
        return "\n\n".join(message.text for message, _ in turn)
    parts = list(pictures)
    for message, marked in turn:
        if message.text:
            mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
            parts.append({"type": "text", "text": message.text, **mark})
    return parts


def _pictures(message: ChatMessage, request: ModelRequest) -> Iterator[Body]:
    for media, data in pictures_of(message, request):
        yield {"type": "image_url", "image_url": {"url": f"data:{media};base64,{data}"}}


def _answer(turn: Sequence[ChatMessage]) -> Body:
    """Return an answer's entry, with text, calls and thinking in the fields in which they arrived."""
    text = "\n\n".join(message.text for message in turn if message.text)
    entry: Body = {"role": "assistant", "content": text}
    calls: list[Body] = []
    for message in turn:
        own = [_call(call) for call in message.calls]
        for thought in message.thoughts:
            match thought.data.get("field"):
                case "reasoning_details":
                    entry["reasoning_details"] = thought.data["details"]
                case "thinking":
                    thinking = {"type": "thinking", "thinking": [{"type": "text", "text": thought.text}]}
                    entry["content"] = [thinking, *([{"type": "text", "text": text}] if text else [])]
                case "extra_content":
                    own[thought.place - bool(message.text.strip())]["extra_content"] = thought.data["extra"]
                case "reasoning_content" | "reasoning" as field:
                    entry[field] = thought.text
                case _:
                    pass
        calls += own
    if calls:
        entry |= {"content": entry["content"] or None, "tool_calls": calls}
    return entry


def _call(call: ToolCall) -> Body:
    function = {"name": call.name, "arguments": call.arguments}
    return {"type": "function", "id": call.id, "function": function}


def _in_messages(change: Callable[[Body], Body]) -> Callable[[Body], Body]:
    return lambda body: {**body, "messages": [change(message) for message in body["messages"]]}


def _without_thinking(message: Body) -> Body:
    return {name: value for name, value in message.items() if name not in THINKING_FIELDS}


def _with_empty_thinking(message: Body) -> Body:
    return {"reasoning_content": "", **message} if message["role"] == "assistant" else message


def _without_null(message: Body) -> Body:
    return {name: "" if value is None else value for name, value in message.items()}


def _with_completion_tokens(body: Body) -> Body:
    rest = {name: value for name, value in body.items() if name != "max_tokens"}
    return {**rest, "max_completion_tokens": body["max_tokens"]}


def _after_results(body: Body) -> Body:
    """Append a user message that follows tool results to the last result, as Mistral requires."""
    entries: list[Body] = []
    for entry in body["messages"]:
        if entries and entries[-1]["role"] == "tool" and entry["role"] == "user":
            both = [entries[-1]["content"], entry["content"]]
            if all(isinstance(content, str) for content in both):
                entries[-1] = {**entries[-1], "content": "\n\n".join(both)}
                continue
            entries.append({"role": "assistant", "content": "Let me look at that."})
        entries.append(entry)
    return {**body, "messages": entries}


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


class OpenAIResponse(WireResponse):
    """Answer as received so far."""

    def __init__(self, model: str = "") -> None:
        super().__init__(model)
        self._calls: list[_OpenCall] = []
        self._thinking: dict[str, str] = {}
        self._details: list[dict[str, JsonValue]] = []

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking."""
        if data.strip() == "[DONE]":  # the end, even without a finish_reason
            self.ended = self.finished = True
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
            self.finished, self._stop = True, STOPS.get(reason, "end")
        arguments = ""
        for part in message.objects("tool_calls"):
            if not self._calls or not self._calls[-1].takes(part):
                self._calls.append(_OpenCall(part))
            self._calls[-1].add(part.inner("function"))
            arguments += part.inner("function").json("arguments")
        refusal = message.text("refusal")
        if refusal:
            self.finished, self._stop = True, "refusal"
        text = message.joined("content") + refusal
        return self._pieces(text, self._think(message), arguments)

    def _parts(self) -> Iterator[ModelPiece]:
        for call in self._calls:
            yield ToolCall(name=call.name, arguments=call.arguments or "{}", id=call.id)
        yield from self._thoughts()

    def _think(self, message: JsonFields) -> str:
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


FALLBACKS = (
    Fallback(
        "response_format", ("response_format", "response format", "json_schema", "json schema", "grammar")
    ),
    Fallback("stream_options", ("stream_options",)),
    Fallback("temperature", ("temperature",)),
    Fallback("max_tokens", ("max_completion_tokens",), _with_completion_tokens),
    Fallback("max_completion_tokens", ("max_completion_tokens", "max_tokens")),
    Fallback("max_tokens", ("max_tokens",)),
    # On this wire, OpenAI's thinking models accept tools only with thinking switched off.
    Fallback("tools", ("tools with reasoning",), set={"reasoning_effort": "none"}),
    # DeepSeek and Kimi require the field in every answer with calls, even without thinking.
    Fallback("messages", THINKING_MISSED, _in_messages(_with_empty_thinking)),
    Fallback("reasoning_effort", ("effort", "think", "reasoning")),
    Fallback("reasoning", ("effort", "reasoning")),
    Fallback("prompt_cache_key", ("prompt_cache_key",)),
    Fallback("messages", ("reasoning", "thinking"), _in_messages(_without_thinking)),
    Fallback("messages", ("after role 'tool'", "roles must alternate"), _after_results),
    Fallback("messages", ("content",), _in_messages(_without_null)),
)

OPENAI = WireFormat("/chat/completions", bearer, _body, OpenAIResponse, FALLBACKS)
