"""Client for a model at an HTTP address that streams events, for all wire formats."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, NamedTuple

from duckflow.domain.errors import Unavailable
from duckflow.domain.frozen import replace
from duckflow.domain.model import (
    CallPiece,
    ModelPiece,
    ModelRequest,
    ModelTraits,
    StopReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Usage,
)
from duckflow.llm.endpoints import Endpoint
from duckflow.llm.streams import closing, read_end
from duckflow.llm.wire.errors import not_understood, status_failure
from duckflow.llm.wire.fallbacks import Fallback, Fallbacks
from duckflow.llm.wire.http import HttpConnection
from duckflow.llm.wire.json_fields import StreamedError

STOPS: dict[str, StopReason] = {
    "length": "length",
    "model_length": "length",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""Reasons of all wire formats for stopping before the answer is complete."""


class WireResponse:
    """Answer as received so far, assembled from the events of its stream."""

    def __init__(self, model: str = "") -> None:
        """`model` is the full name to store in the thoughts."""
        self.ended = False
        """True once no more events are expected."""
        self.finished = False
        """True once the answer is complete; its usage may follow."""
        self._model = model
        self._said = False
        self._stop: StopReason = "end"
        self._usage = Usage()

    def add(self, data: str) -> list[ModelPiece]:
        """Process an event, and return its text and thinking. Raises ValueError or StreamedError."""
        raise NotImplementedError

    def _parts(self) -> Iterator[ModelPiece]:
        """Yield the calls and thoughts."""
        raise NotImplementedError

    def rest(self) -> Iterator[ModelPiece]:
        """Yield the pieces known only at the end: calls, thoughts and the StreamEnd."""
        if not self.finished:
            raise Unavailable("llm.cut_off")
        yield from self._parts()
        yield StreamEnd(stop=self._stop, usage=self._usage)

    def _pieces(self, text: str, thinking: str = "", arguments: str = "") -> list[ModelPiece]:
        self._said = self._said or bool(text.strip())
        return [
            *([ThinkingPiece(text=thinking)] if thinking else []),
            *([TextPiece(text=text)] if text else []),
            *([CallPiece(size=len(arguments.encode(errors="replace")))] if arguments else []),
        ]


class WireFormat(NamedTuple):
    """Format of a kind of provider's requests and answers."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    """Function from the key, which may be empty, to the headers."""
    body: Callable[[Endpoint, ModelTraits, ModelRequest], dict[str, Any]]
    response: Callable[[str], WireResponse]
    """Function that creates an empty answer, given the model's full name."""
    fallbacks: tuple[Fallback, ...]


class WireModel:
    """Model at one endpoint."""

    def __init__(self, wire: WireFormat, endpoint: Endpoint, traits: ModelTraits) -> None:
        self.traits = traits
        self._wire = wire
        self._endpoint = endpoint
        self._fallbacks = Fallbacks(wire.fallbacks)
        self._connection = HttpConnection(endpoint, wire.headers(endpoint.key))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Stream the answer."""
        known = request.window or self.traits.window
        window = min(known, self._fallbacks.window or known)
        body = self._wire.body(self._endpoint, self.traits, replace(request, window=window))
        return self._fallbacks.apply(body, lambda body: self._answer(request, body))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()

    async def _answer(self, request: ModelRequest, body: dict[str, Any]) -> AsyncGenerator[ModelPiece]:
        answer, data = self._wire.response(self.traits.name), ""
        try:
            async with closing(self._connection.post(self._wire.path, body, request.time_limit_s)) as events:
                async for data in events:
                    for piece in answer.add(data):
                        yield piece
                    if answer.ended:
                        await read_end(events)
                        break
            for piece in answer.rest():
                yield piece
        except ValueError as exc:
            raise not_understood(self._endpoint, data) from exc
        except StreamedError as exc:
            raise status_failure(self._endpoint, exc.status, exc.said or data) from exc
