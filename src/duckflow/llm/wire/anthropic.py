"""Anthropic messages, with marks that let the provider remember the beginning of a prompt."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits
from duckflow.llm.wire.anthropic_response import AnthropicResponse
from duckflow.llm.wire.client import WireFormat
from duckflow.llm.wire.endpoints import THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.fallbacks import Fallback

VERSION = "2023-06-01"
MAX_MARKS = 4
"""The provider refuses more."""

BRIEF_MODELS = ("claude-2", "claude-3", "claude-instant")
"""They do not think, and refuse to be allowed a longer answer."""

FALLBACKS = (Fallback("temperature", ("temperature",)),)


def _headers(key: str) -> dict[str, str]:
    return {"anthropic-version": VERSION, **({"x-api-key": key} if key else {})}


def _body(endpoint: Endpoint, _: ModelTraits, request: ModelRequest) -> dict[str, Any]:
    allowance = 0 if endpoint.model.startswith(BRIEF_MODELS) else THINKING_ALLOWANCE
    system, turns = split_system(request.messages, request.picture_data)
    body: dict[str, Any] = {
        "model": endpoint.model,
        "max_tokens": request.max_tokens + allowance,
        "messages": turns,
        "stream": True,
    }
    if system:
        body["system"] = system
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.tools:
        body["tools"] = [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}
            for tool in request.tools
        ]
    return body


def split_system(
    messages: Sequence[ChatMessage], data: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The system blocks and the turns, as the wire has them, marked for the cache."""
    said = [message for message in messages if message.text.strip()]
    count = next((place for place, message in enumerate(said) if message.role != "system"), len(said))
    blocks: list[dict[str, Any]] = [{"type": "text", "text": message.text} for message in said]
    for place in _marked(said, count):
        blocks[place]["cache_control"] = {"type": "ephemeral"}
    turns: list[dict[str, Any]] = []
    # What the program says later in the conversation is not the system's any more, but no answer either.
    for answers, places in groupby(
        range(count, len(said)), key=lambda place: said[place].role == "assistant"
    ):
        content = [block for place in places for block in (*_pictures(said[place], data), blocks[place])]
        turns.append({"role": "assistant" if answers else "user", "content": content})
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": "Begin."}]})
    return blocks[:count], turns


def _marked(messages: Sequence[ChatMessage], count: int) -> set[int]:
    """Where the cache gets its marks: the end of the system's part, and the last stable messages."""
    stable = [place for place, message in enumerate(messages) if message.stable]
    in_system = [place for place in stable if place < count]
    first = in_system[-1:] or ([count - 1] if count else [])
    later = [place for place in stable if place >= count]
    return {*first, *later[-(MAX_MARKS - len(first)) :]}


def _pictures(message: ChatMessage, data: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for picture in message.pictures:
        if picture.digest in data:
            source = {"type": "base64", "media_type": picture.media, "data": data[picture.digest]}
            yield {"type": "image", "source": source}


ANTHROPIC = WireFormat("/v1/messages", _headers, _body, AnthropicResponse, FALLBACKS)
