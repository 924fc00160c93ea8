"""OpenAI's Responses API, for OpenAI itself and for compatible servers.

The provider stores nothing: each prompt includes the encrypted reasoning items.
"""

from collections.abc import Iterator

from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.wire.client import WireFormat
from duckflow.llm.wire.fallbacks import Body, Fallback
from duckflow.llm.wire.request import answer_room, bearer, cache_marks, leading_system, usable_messages
from duckflow.llm.wire.responses_response import ResponsesResponse

MARK = {"prompt_cache_breakpoint": {"mode": "explicit"}}

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
    """Return the version in a GPT model's name; (0, 0) for other models."""
    found = _GPT.match(name)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def _items(message: ChatMessage, request: ModelRequest, asker: str, *, marked: bool) -> Iterator[Body]:
    """Yield the items of a message.

    Reasoning precedes the item it led to, and both keep their ids: OpenAI refuses one without the other.
    """
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
        {
            "type": "input_image",
            "image_url": f"data:{picture.media};base64,{request.picture_data[picture.digest]}",
        }
        for picture in message.pictures
        if picture.digest in request.picture_data
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
