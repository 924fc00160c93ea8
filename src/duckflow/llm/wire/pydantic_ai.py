"""Every other provider, through pydantic-ai: an extra, slow to import, so imported only when one is named."""

import base64
import json
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from itertools import groupby

from pydantic_ai import exceptions as foreign
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    ChatMessage,
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StopReason,
    StreamEnd,
    TextPiece,
    ToolCall,
    Usage,
)
from duckflow.llm.streams import MAX_ANSWER_BYTES, bounded, closing
from duckflow.llm.wire.endpoints import THINKING_ALLOWANCE, Endpoint
from duckflow.llm.wire.errors import plain, status_failure
from duckflow.llm.wire.library_http import TRANSPORT_ERRORS, transport_failure

STOPS: dict[str, StopReason] = {
    "stop": "end",
    "length": "length",
    "content_filter": "refusal",
    "tool_call": "tool_calls",
}

STATUS: tuple[tuple[type[foreign.ModelAPIError], int], ...] = (
    (foreign.ModelRateLimitError, 429),
    (foreign.ModelQuotaExceededError, 402),
    (foreign.ModelUnavailableError, 503),
    (foreign.ModelServerError, 500),
    (foreign.ModelAuthenticationError, 401),
    (foreign.ModelNotFoundError, 404),
    (foreign.ModelRequestRejectedError, 400),
)
"""The status of errors that came without one; the first that fits counts."""


class PydanticAIModel:
    """A model that pydantic-ai knows how to reach."""

    def __init__(self, model: Model, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._model = model
        self._endpoint = endpoint
        self.traits = traits

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """The answer, piece by piece."""
        return bounded(self._answer(request), request.time_limit_s)

    async def aclose(self) -> None:
        """Close the connections, which pydantic-ai does where its context is left."""
        async with self._model:
            pass

    async def _answer(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        try:
            async with self._ask(request) as response, closing(self._pieces(response)) as pieces:
                async for piece in pieces:
                    yield piece
        except foreign.ContentFilterError:
            yield StreamEnd(stop="refusal")
        except ProviderError:
            raise
        except Exception as exc:
            # Whatever a provider's library throws, the user gets a sentence.
            raise self._failure(exc, request.time_limit_s) from exc

    def _ask(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        allowance = THINKING_ALLOWANCE if self._endpoint.provider.name == "google" else 0
        settings = ModelSettings(max_tokens=request.max_tokens + allowance)
        if request.temperature is not None:
            settings["temperature"] = request.temperature
        tools = [
            ToolDefinition(
                name=tool.name, description=tool.description, parameters_json_schema=tool.parameters
            )
            for tool in request.tools
        ]
        return model_request_stream(
            self._model,
            to_foreign(request.messages, request.picture_data),
            model_settings=settings,
            model_request_parameters=ModelRequestParameters(function_tools=tools),
            instrument=False,
        )

    async def _pieces(self, response: StreamedResponse) -> AsyncGenerator[ModelPiece]:
        size, called = 0, False
        async for event in response:
            piece = _piece(event)
            if piece is None:
                continue
            called = called or isinstance(piece, ToolCall)
            size += len(
                (piece.text if isinstance(piece, TextPiece) else piece.arguments).encode("utf-8", "replace")
            )
            if size > MAX_ANSWER_BYTES:
                raise ProviderError(
                    "llm.too_large", address=self._endpoint.provider.name, detail=f"{size} bytes"
                )
            yield piece
        if response.finish_reason == "error":
            raise Unavailable("llm.cut_off")
        stop = STOPS.get(response.finish_reason or "", "end")
        yield StreamEnd(stop="tool_calls" if called and stop == "end" else stop, usage=_usage(response))

    def _failure(self, exc: Exception, seconds: float) -> ProviderError:
        name = self._endpoint.provider.name
        if isinstance(exc, TRANSPORT_ERRORS):
            return transport_failure(exc, self._endpoint)
        if isinstance(exc, foreign.ModelHTTPError):
            return self._status(exc, exc.status_code)
        if isinstance(exc, foreign.ModelTimeoutError | foreign.ModelRequestTimeout):
            return Unavailable("llm.timeout", seconds=seconds)
        if isinstance(exc, foreign.ModelConnectionError):
            key = "llm.unreachable" if exc.phase == "connect" else "llm.cut_off"
            return Unavailable(key, address=name, detail=plain(str(exc)))
        for kind, status in STATUS:
            if isinstance(exc, kind):
                return self._status(exc, status)
        return ProviderError(
            "llm.provider_fault", provider=name, detail=plain(str(exc) or type(exc).__name__)
        )

    def _status(self, exc: foreign.ModelAPIError, status: int) -> ProviderError:
        body = exc.body or str(exc)
        body = body if isinstance(body, str) else json.dumps(body, default=str)
        wait = None if exc.retry_after is None else str(exc.retry_after)
        return status_failure(self._endpoint, status, body, wait)


def open_pydantic_ai(endpoint: Endpoint, traits: ModelTraits) -> PydanticAIModel:
    """The model named by the endpoint. The provider's library reads its own keys from the environment."""
    try:
        return PydanticAIModel(infer_model(endpoint.name), endpoint, traits)
    except foreign.UserError as exc:
        raise ProviderError(
            "llm.provider_fault", provider=endpoint.provider.name, detail=plain(str(exc))
        ) from exc


def to_foreign(messages: Iterable[ChatMessage], data: Mapping[str, str]) -> list[parts.ModelMessage]:
    """A prompt in pydantic-ai's words."""
    turns: list[parts.ModelMessage] = []
    for answered, turn in groupby(messages, key=lambda message: message.role == "assistant"):
        if answered:
            turns.append(parts.ModelResponse(parts=[parts.TextPart(message.text) for message in turn]))
        else:
            turns.append(parts.ModelRequest(parts=[_asked(message, data) for message in turn]))
    return turns


def _asked(message: ChatMessage, data: Mapping[str, str]) -> parts.SystemPromptPart | parts.UserPromptPart:
    if message.role == "system":
        return parts.SystemPromptPart(message.text)
    pictures = [
        parts.BinaryContent(base64.b64decode(data[picture.digest]), media_type=picture.media)
        for picture in message.pictures
        if picture.digest in data
    ]
    return parts.UserPromptPart([*pictures, message.text] if pictures else message.text)


def _piece(event: object) -> TextPiece | ToolCall | None:
    """What of an event the port has a word for; thinking and the rest is passed over."""
    match event:
        case parts.PartStartEvent(part=parts.TextPart(content=text)) if text:
            return TextPiece(text=text)
        case parts.PartDeltaEvent(delta=parts.TextPartDelta(content_delta=text)) if text:
            return TextPiece(text=text)
        case parts.PartEndEvent(part=parts.ToolCallPart() as call):
            written = call.args if isinstance(call.args, str) else call.args_as_json_str()
            return ToolCall(name=call.tool_name, arguments=written or "{}")
        case _:
            return None


def _usage(response: StreamedResponse) -> Usage:
    used = response.usage
    return Usage(
        input_tokens=used.input_tokens, cached_tokens=used.cache_read_tokens, output_tokens=used.output_tokens
    )
