"""Other providers, through pydantic-ai: an optional extra, imported on demand because it is slow."""

import base64
import json
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from itertools import groupby

from pydantic import TypeAdapter, ValidationError
from pydantic_ai import exceptions as foreign
from pydantic_ai import messages as parts
from pydantic_ai.direct import model_request_stream
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse, infer_model
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition

from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import (
    CallPiece,
    ChatMessage,
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Thought,
    ToolCall,
    Usage,
)
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.streams import MAX_ANSWER_BYTES, bounded, closing
from duckflow.llm.wire.client import STOPS
from duckflow.llm.wire.errors import plain, status_failure
from duckflow.llm.wire.library_http import TRANSPORT_ERRORS, transport_failure
from duckflow.llm.wire.request import answer_room, usable_messages

STATUS: tuple[tuple[type[foreign.ModelAPIError], int], ...] = (
    (foreign.ModelRateLimitError, 429),
    (foreign.ModelQuotaExceededError, 402),
    (foreign.ModelUnavailableError, 503),
    (foreign.ModelServerError, 500),
    (foreign.ModelAuthenticationError, 401),
    (foreign.ModelNotFoundError, 404),
    (foreign.ModelRequestRejectedError, 400),
)
"""HTTP status for errors that carry none; the first match counts."""


class PydanticAIModel:
    """Model of a provider that pydantic-ai supports."""

    def __init__(self, model: Model, endpoint: Endpoint, traits: ModelTraits) -> None:
        self._model = model
        self._endpoint = endpoint
        self.traits = traits

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer."""
        return bounded(self._answer(request), request.time_limit_s)

    async def aclose(self) -> None:
        """Close the connections, which pydantic-ai does when its context manager exits."""
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
            # The user gets a sentence for any exception of a provider's library.
            raise self._failure(exc, request.time_limit_s) from exc

    def _ask(self, request: ModelRequest) -> AbstractAsyncContextManager[StreamedResponse]:
        profile = self._model.profile
        thinks = profile.get("supports_thinking", False) or profile.get("thinking_always_enabled", False)
        room = answer_room(self.traits, request) if thinks else request.max_tokens
        settings = ModelSettings(max_tokens=room)
        if request.effort is not None:
            settings["thinking"] = request.effort  # pydantic-ai leaves it out for models that don't think
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
            to_foreign(usable_messages(request, self.traits.name), request.picture_data),
            model_settings=settings,
            model_request_parameters=ModelRequestParameters(function_tools=tools),
            instrument=False,
        )

    async def _pieces(self, response: StreamedResponse) -> AsyncGenerator[ModelPiece]:
        size = 0
        async for event in response:
            piece = _piece(event)
            if piece is None:
                continue
            match piece:
                case ToolCall():
                    size += len(piece.arguments.encode("utf-8", "replace"))
                case TextPiece() | ThinkingPiece():
                    size += len(piece.text.encode("utf-8", "replace"))
                case CallPiece():
                    pass  # the whole call follows
            if size > MAX_ANSWER_BYTES:
                raise ProviderError(
                    "llm.too_large", address=self._endpoint.provider.name, detail=f"{size} bytes"
                )
            yield piece
        if response.finish_reason == "error":
            raise Unavailable("llm.cut_off")
        thought = _thought(self.traits.name, response.get())
        if thought is not None:
            yield thought
        stop = STOPS.get(response.finish_reason or "", "end")
        yield StreamEnd(stop=stop, usage=_usage(response))

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
        return status_failure(self._endpoint, status, body, exc.retry_after)


def open_pydantic_ai(endpoint: Endpoint, traits: ModelTraits) -> PydanticAIModel:
    """Open the endpoint's model. The provider's library reads its keys from the environment."""
    try:
        return PydanticAIModel(infer_model(endpoint.name), endpoint, traits)
    except foreign.UserError as exc:
        raise ProviderError(
            "llm.provider_fault", provider=endpoint.provider.name, detail=plain(str(exc))
        ) from exc


def to_foreign(messages: Iterable[ChatMessage], data: Mapping[str, str]) -> list[parts.ModelMessage]:
    """Convert a prompt to pydantic-ai's messages."""
    turns: list[parts.ModelMessage] = []
    names: dict[str, str] = {}
    for answered, turn in groupby(messages, key=lambda message: message.role == "assistant"):
        if answered:
            said = [*turn]
            names |= {call.id: call.name for message in said for call in message.calls}
            first, *more = map(_answered, said)
            turns.append(replace(first, parts=[part for one in (first, *more) for part in one.parts]))
        else:
            asked = (part for message in turn for part in _asked(message, names, data))
            turns.append(parts.ModelRequest(parts=[*asked]))
    return turns


def _answered(message: ChatMessage) -> parts.ModelResponse:
    """Return an answer as its provider sent it, if that was stored; else its text and calls."""
    for thought in message.thoughts:
        try:
            response = _RESPONSES.validate_python(thought.data)
        except ValidationError:  # perhaps written by another release of pydantic-ai
            continue
        text = "".join(part.content for part in response.parts if isinstance(part, parts.TextPart))
        calls = [part.tool_call_id for part in response.parts if isinstance(part, parts.ToolCallPart)]
        if (text.strip(), calls) == (message.text.strip(), [call.id for call in message.calls]):
            return response
    said = [parts.TextPart(message.text)] if message.text or not message.calls else []
    made = (parts.ToolCallPart(call.name, call.arguments, tool_call_id=call.id) for call in message.calls)
    return parts.ModelResponse(parts=[*said, *made])


def _asked(
    message: ChatMessage, names: Mapping[str, str], data: Mapping[str, str]
) -> Iterator[parts.ModelRequestPart]:
    pictures = [
        parts.BinaryContent(base64.b64decode(data[picture.digest]), media_type=picture.media)
        for picture in message.pictures
        if picture.digest in data
    ]
    if message.role == "system":
        yield parts.SystemPromptPart(message.text)
    elif message.result_of in names:
        yield parts.ToolReturnPart(
            names[message.result_of],
            [message.text, *pictures] if pictures else message.text,
            tool_call_id=message.result_of,
            outcome="failed" if message.failed else "success",
        )
    else:
        yield parts.UserPromptPart([*pictures, message.text] if pictures else message.text)


def _piece(event: object) -> TextPiece | ThinkingPiece | CallPiece | ToolCall | None:
    match event:
        case parts.PartStartEvent(part=parts.TextPart(content=text)) if text:
            return TextPiece(text=text)
        case parts.PartDeltaEvent(delta=parts.TextPartDelta(content_delta=text)) if text:
            return TextPiece(text=text)
        case parts.PartStartEvent(part=parts.ThinkingPart(content=text)) if text:
            return ThinkingPiece(text=text)
        case parts.PartDeltaEvent(delta=parts.ThinkingPartDelta(content_delta=text)) if text:
            return ThinkingPiece(text=text)
        case parts.PartDeltaEvent(delta=parts.ToolCallPartDelta(args_delta=str(text))) if text:
            return CallPiece(size=len(text.encode("utf-8", "replace")))
        case parts.PartEndEvent(part=parts.ToolCallPart() as call):
            written = call.args if isinstance(call.args, str) else call.args_as_json_str()
            return ToolCall(name=call.tool_name, arguments=written or "{}", id=call.tool_call_id)
        case _:
            return None


def _thought(model: str, response: parts.ModelResponse) -> Thought | None:
    """Return the whole answer if a part has a signature or details that the provider needs back."""
    signed = any(
        part.provider_details or (isinstance(part, parts.ThinkingPart) and (part.signature or part.id))
        for part in response.parts
    )
    if not signed:
        return None
    text = "\n\n".join(part.content for part in response.parts if isinstance(part, parts.ThinkingPart))
    data = _RESPONSES.dump_python(response, mode="json", include=_HANDED_BACK, exclude_none=True)
    return Thought(model=model, text=text, data=data)


_RESPONSES = TypeAdapter(parts.ModelResponse)
_HANDED_BACK = {"parts", "provider_name", "provider_url", "canonical_system"}
"""Fields of an answer that pydantic-ai needs to send it back."""


def _usage(response: StreamedResponse) -> Usage:
    used = response.usage
    thinking = (used.details.get(name, 0) for name in ("thoughts_tokens", "reasoning_tokens"))
    return Usage(
        input_tokens=used.input_tokens,
        cached_tokens=used.cache_read_tokens,
        cache_written_tokens=used.cache_write_tokens,
        output_tokens=used.output_tokens,
        thinking_tokens=max(thinking),
    )
