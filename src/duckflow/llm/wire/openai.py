"""OpenAI-compatible chat completions: the wire most servers speak."""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits
from duckflow.llm.wire.client import WireFormat
from duckflow.llm.wire.endpoints import THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.fallbacks import Fallback
from duckflow.llm.wire.openai_response import OpenAIResponse

FALLBACKS = (
    Fallback(
        "response_format", ("response_format", "response format", "json_schema", "json schema", "grammar")
    ),
    Fallback("stream_options", ("stream_options",)),
    Fallback("temperature", ("temperature",)),
    Fallback("max_completion_tokens", ("max_completion_tokens", "max_tokens")),
    Fallback("max_tokens", ("max_tokens",)),
    # OpenAI's thinking models take tools on this wire only without their thinking.
    Fallback("tools", ("reasoning_effort",), {"reasoning_effort": "none"}),
)


def _headers(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"} if key else {}


def _body(endpoint: Endpoint, traits: ModelTraits, request: ModelRequest) -> dict[str, Any]:
    body: dict[str, Any] = {
        "model": endpoint.model,
        "messages": turns(request),
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if endpoint.provider.name == "openai" and not endpoint.own:
        body["max_completion_tokens"] = request.max_tokens + THINKING_ALLOWANCE
    else:
        body["max_tokens"] = request.max_tokens
    if request.temperature is not None:
        body["temperature"] = request.temperature
    # Large models need room around the JSON (raw blocks); small ones lose their way without the rail.
    if request.answer_schema is not None and traits.small:
        schema = {"name": request.output, "schema": request.answer_schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    if request.stop:
        body["stop"] = list(request.stop)
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description,
                    "parameters": tool.parameters,
                },
            }
            for tool in request.tools
        ]
    return body


def turns(request: ModelRequest) -> list[dict[str, Any]]:
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


OPENAI = WireFormat("/chat/completions", _headers, _body, OpenAIResponse, FALLBACKS)
