"""Anthropic messages, with marks that let the provider remember the beginning of a prompt."""

from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, TextPiece
from duckflow.llm.streams import closing, read_end
from duckflow.llm.wire.anthropic_response import AnthropicResponse, Event
from duckflow.llm.wire.endpoints import THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.errors import not_understood, status_failure
from duckflow.llm.wire.fallbacks import Fallback, Fallbacks
from duckflow.llm.wire.http import HttpConnection

VERSION = "2023-06-01"
MAX_MARKS = 4
"""The provider refuses more."""

BRIEF_MODELS = ("claude-2", "claude-3", "claude-instant")
"""They do not think, and refuse to be allowed a longer answer."""

FALLBACKS = (Fallback("temperature", ("temperature",), {"temperature": None}),)

ERROR_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""An error inside a stream has no status; its type says which one it would have had."""


class AnthropicModel:
    """A model behind Anthropic's address, or one that speaks like it."""

    def __init__(self, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._endpoint = endpoint
        self._traits = traits
        self._fallbacks = Fallbacks(FALLBACKS)
        headers = {"anthropic-version": VERSION}
        if endpoint.key:
            headers["x-api-key"] = endpoint.key
        self._connection = HttpConnection(endpoint, headers)

    @property
    def traits(self) -> ModelTraits:
        """What the prompts need to know of it."""
        return self._traits

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """The answer, piece by piece."""
        return self._fallbacks.apply(self._body(request), lambda body: self._answer(request, body))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()

    async def _answer(self, request: ModelRequest, body: dict[str, Any]) -> AsyncGenerator[ModelPiece]:
        answer = AnthropicResponse()
        async with closing(self._connection.post("/v1/messages", body, request.time_limit_s)) as events:
            async for data in events:
                text = answer.add(self._read(data))
                if text:
                    yield TextPiece(text=text)
                if answer.ended:
                    await read_end(events)
                    break
        for piece in answer.rest():
            yield piece

    def _read(self, data: str) -> Event:
        try:
            event = Event.from_json(data)
        except ValueError as exc:
            raise not_understood(self._endpoint, data) from exc
        if event.error is not None:
            raise status_failure(self._endpoint, ERROR_STATUS.get(event.error.type or "", 500), data)
        return event

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        allowance = 0 if self._endpoint.model.startswith(BRIEF_MODELS) else THINKING_ALLOWANCE
        system, turns = split_system(request.messages, request.picture_data)
        body: dict[str, Any] = {
            "model": self._endpoint.model,
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
                {
                    "name": tool.name,
                    "description": tool.description,
                    "input_schema": tool.parameters,
                }
                for tool in request.tools
            ]
        return body


def split_system(
    messages: Sequence[ChatMessage], data: Mapping[str, str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The system blocks and the turns, as the wire has them, marked for the cache."""
    said = [message for message in messages if message.text.strip()]
    marked = _marked(said)
    count = _leading_system(said)
    blocks = [_block(message, mark=place in marked) for place, message in enumerate(said)]
    turns: list[dict[str, Any]] = []
    # What the program says later in the conversation is not the system's any more, but no answer either.
    for role, places in groupby(range(count, len(said)), key=lambda place: _role(said[place])):
        turns.append(
            {
                "role": role,
                "content": [
                    block for place in places for block in (*_pictures(said[place], data), blocks[place])
                ],
            }
        )
    if not turns or turns[0]["role"] != "user":
        turns.insert(0, {"role": "user", "content": [{"type": "text", "text": "Begin."}]})
    return blocks[:count], turns


def _role(message: ChatMessage) -> str:
    return "assistant" if message.role == "assistant" else "user"


def _leading_system(messages: Sequence[ChatMessage]) -> int:
    """How many messages at the beginning are the system's."""
    return next((place for place, message in enumerate(messages) if message.role != "system"), len(messages))


def _marked(messages: Sequence[ChatMessage]) -> set[int]:
    """Where the cache gets its marks: the end of the system's part, and the last stable messages."""
    count = _leading_system(messages)
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


def _block(message: ChatMessage, *, mark: bool) -> dict[str, Any]:
    block: dict[str, Any] = {"type": "text", "text": message.text}
    if mark:
        block["cache_control"] = {"type": "ephemeral"}
    return block
