"""OpenAI-compatible chat completions, the format of most servers. OpenAI itself uses `responses`."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, ToolCall
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.client import WireFormat
from duckflow.llm.wire.fallbacks import Body, Fallback
from duckflow.llm.wire.openai_response import THINKING_FIELDS, OpenAIResponse
from duckflow.llm.wire.request import (
    CHAT_ID,
    answer_room,
    bearer,
    cache_marks,
    leading_system,
    usable_messages,
)

_MISTRAL_ID = lazy_regex(r"[a-zA-Z0-9]{9}")

MARKED_MODELS = ("anthropic/", "google/", "openai/gpt-5.6", "openai/gpt-6", "openai/gpt-7")
"""OpenRouter models whose prompt cache needs marks, or works better with them."""

MISTRAL_EFFORTS = {"low": "none", "medium": "high", "high": "high"}
"""Mistral's levels: its models only know thinking on and off (the default), and refuse other levels."""


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
    for picture in message.pictures:
        if picture.digest in request.picture_data:
            url = f"data:{picture.media};base64,{request.picture_data[picture.digest]}"
            yield {"type": "image_url", "image_url": {"url": url}}


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


def _without_thinking(body: Body) -> Body:
    messages = [
        {name: value for name, value in message.items() if name not in THINKING_FIELDS}
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def _with_empty_thinking(body: Body) -> Body:
    messages = [
        {"reasoning_content": "", **message} if message["role"] == "assistant" else message
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


def _without_null(body: Body) -> Body:
    messages = [
        {name: "" if value is None else value for name, value in message.items()}
        for message in body["messages"]
    ]
    return {**body, "messages": messages}


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
    Fallback("tools", ("tools with reasoning",), {"reasoning_effort": "none"}),
    # DeepSeek and Kimi require the field in every answer with calls, even without thinking.
    Fallback("messages", THINKING_MISSED, _with_empty_thinking),
    Fallback("reasoning_effort", ("effort", "think", "reasoning")),
    Fallback("reasoning", ("effort", "reasoning")),
    Fallback("prompt_cache_key", ("prompt_cache_key",)),
    Fallback("messages", ("reasoning", "thinking"), _without_thinking),
    Fallback("messages", ("after role 'tool'", "roles must alternate"), _after_results),
    Fallback("messages", ("content",), _without_null),
)

OPENAI = WireFormat("/chat/completions", bearer, _body, OpenAIResponse, FALLBACKS)
