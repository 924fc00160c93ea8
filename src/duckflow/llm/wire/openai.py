"""OpenAI-compatible chat completions: the wire most servers speak."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from itertools import groupby
from typing import Any

from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, NativeTool, TextPiece
from duckflow.llm.streams import closing, read_end
from duckflow.llm.wire.endpoints import THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.errors import not_understood, status_failure
from duckflow.llm.wire.fallbacks import Fallback, Fallbacks
from duckflow.llm.wire.http import HttpConnection
from duckflow.llm.wire.openai_response import Chunk, OpenAIResponse

FALLBACKS = (
    Fallback(
        "response_format",
        ("response_format", "response format", "json_schema", "json schema", "grammar"),
        {"response_format": None},
    ),
    Fallback("stream_options", ("stream_options",), {"stream_options": None}),
    Fallback("temperature", ("temperature",), {"temperature": None}),
    Fallback(
        "max_completion_tokens", ("max_completion_tokens", "max_tokens"), {"max_completion_tokens": None}
    ),
    Fallback("max_tokens", ("max_tokens",), {"max_tokens": None}),
    # OpenAI's thinking models take tools on this wire only without their thinking.
    Fallback("tools", ("reasoning_effort",), {"reasoning_effort": "none"}),
)


class OpenAIModel:
    """A model behind an OpenAI-compatible address."""

    def __init__(self, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._endpoint = endpoint
        self._traits = traits
        self._fallbacks = Fallbacks(FALLBACKS)
        headers = {"Authorization": f"Bearer {endpoint.key}"} if endpoint.key else {}
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
        answer = OpenAIResponse()
        async with closing(self._connection.post("/chat/completions", body, request.time_limit_s)) as events:
            async for data in events:
                if data.strip() == "[DONE]":
                    answer.end()
                    await read_end(events)
                    break
                text = answer.add(self._read(data))
                if text:
                    yield TextPiece(text=text)
        for piece in answer.rest():
            yield piece

    def _read(self, data: str) -> Chunk:
        try:
            chunk = Chunk.from_json(data)
        except ValueError as exc:
            raise not_understood(self._endpoint, data) from exc
        if chunk.error is None:
            return chunk
        code = chunk.error.get("code") if isinstance(chunk.error, dict) else None
        raise status_failure(self._endpoint, code if isinstance(code, int) and code >= 400 else 500, data)

    def _body(self, request: ModelRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._endpoint.model,
            "messages": _turns(request),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if self._endpoint.provider.name == "openai" and not self._endpoint.own:
            body["max_completion_tokens"] = request.max_tokens + THINKING_ALLOWANCE
        else:
            body["max_tokens"] = request.max_tokens
        if request.temperature is not None:
            body["temperature"] = request.temperature
        # Large models need room around the JSON (raw blocks); small ones lose their way without the rail.
        if request.answer_schema is not None and self._traits.small:
            schema = {"name": request.output, "schema": request.answer_schema}
            body["response_format"] = {"type": "json_schema", "json_schema": schema}
        if request.stop:
            body["stop"] = list(request.stop)
        if request.tools:
            body["tools"] = _functions(request.tools)
        return body


def _turns(request: ModelRequest) -> list[dict[str, Any]]:
    """One entry a turn: many chat templates refuse two of the same role in a row."""
    return [
        {"role": role, "content": _content(list(turn), request.picture_data)}
        for role, turn in groupby(request.messages, key=lambda message: message.role)
    ]


def _content(turn: Sequence[ChatMessage], data: Mapping[str, str]) -> str | list[dict[str, Any]]:
    """Parts only if there is a picture: many servers know nothing but text."""
    text = "\n\n".join(message.text for message in turn)
    pictures = [picture for message in turn for picture in message.pictures if picture.digest in data]
    if not pictures:
        return text
    urls = [f"data:{picture.media};base64,{data[picture.digest]}" for picture in pictures]
    return [
        *({"type": "image_url", "image_url": {"url": url}} for url in urls),
        {"type": "text", "text": text},
    ]


def _functions(tools: tuple[NativeTool, ...]) -> list[dict[str, Any]]:
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.parameters,
            },
        }
        for tool in tools
    ]
