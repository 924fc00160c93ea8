"""A model behind an address that streams events: one client for both wire formats."""

from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from typing import Any, NamedTuple, Protocol

from duckflow.domain.model import ModelPiece, ModelRequest, ModelTraits, TextPiece
from duckflow.llm.streams import closing, read_end
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.errors import not_understood, status_failure
from duckflow.llm.wire.fallbacks import Fallback, Fallbacks
from duckflow.llm.wire.http import HttpConnection
from duckflow.llm.wire.lenient import StreamedError


class WireResponse(Protocol):
    """An answer that is put together from the events of its stream."""

    ended: bool

    def add(self, data: str) -> str:
        """Take an event in; its text is returned. Raises ValueError for what is none, or StreamedError."""
        ...

    def rest(self) -> Iterator[ModelPiece]:
        """What can be told only at the end."""
        ...


class WireFormat(NamedTuple):
    """What one provider's requests and answers look like."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    """By the key, which may be empty."""
    body: Callable[[Endpoint, ModelTraits, ModelRequest], dict[str, Any]]
    response: Callable[[], WireResponse]
    fallbacks: tuple[Fallback, ...]


class WireModel:
    """A model at one endpoint."""

    def __init__(self, wire: WireFormat, endpoint: Endpoint, traits: ModelTraits) -> None:
        self.traits = traits
        self._wire = wire
        self._endpoint = endpoint
        self._fallbacks = Fallbacks(wire.fallbacks)
        self._connection = HttpConnection(endpoint, wire.headers(endpoint.key))

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """The answer, piece by piece."""
        body = self._wire.body(self._endpoint, self.traits, request)
        return self._fallbacks.apply(body, lambda body: self._answer(request, body))

    async def aclose(self) -> None:
        """Close the connection."""
        await self._connection.aclose()

    async def _answer(self, request: ModelRequest, body: dict[str, Any]) -> AsyncGenerator[ModelPiece]:
        answer = self._wire.response()
        async with closing(self._connection.post(self._wire.path, body, request.time_limit_s)) as events:
            async for data in events:
                try:
                    text = answer.add(data)
                except ValueError as exc:
                    raise not_understood(self._endpoint, data) from exc
                except StreamedError as exc:
                    raise status_failure(self._endpoint, exc.status, data) from exc
                if text:
                    yield TextPiece(text=text)
                if answer.ended:
                    await read_end(events)
                    break
        for piece in answer.rest():
            yield piece
