"""Client for a model at an HTTP address that streams events, for all wire formats."""

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from typing import Any, NamedTuple, Protocol
from uuid import uuid4

from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelPiece, ModelRequest, ModelTraits, ToolCall
from duckflow.llm.streams import closing, read_end
from duckflow.llm.wire.endpoints import Endpoint
from duckflow.llm.wire.errors import not_understood, status_failure
from duckflow.llm.wire.fallbacks import Fallback, Fallbacks
from duckflow.llm.wire.http import HttpConnection
from duckflow.llm.wire.lenient import StreamedError


class WireResponse(Protocol):
    """Answer that is assembled from the events of its stream."""

    ended: bool

    def add(self, data: str) -> Iterable[ModelPiece]:
        """Process an event, and return its text and thinking.

        Raises ValueError for an invalid event, and StreamedError for an error of the server.
        """
        ...

    def rest(self) -> Iterable[ModelPiece]:
        """Yield what is known only at the end: calls, thoughts and the end itself."""
        ...


class WireFormat(NamedTuple):
    """Format of a kind of provider's requests and answers."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    """Function from the key, which may be empty, to the headers."""
    body: Callable[[Endpoint, ModelTraits, ModelRequest], dict[str, Any]]
    response: Callable[[str], WireResponse]
    """Function from the model's full name, which is stored in its thoughts, to an empty answer."""
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
        answer = self._wire.response(self.traits.name)
        async with closing(self._connection.post(self._wire.path, body, request.time_limit_s)) as events:
            async for data in events:
                try:
                    pieces = answer.add(data)
                except ValueError as exc:
                    raise not_understood(self._endpoint, data) from exc
                except StreamedError as exc:
                    raise status_failure(self._endpoint, exc.status, exc.said or data) from exc
                for piece in pieces:
                    yield piece
                if answer.ended:
                    await read_end(events)
                    break
        used: set[str] = set()
        for piece in answer.rest():
            yield _identified(piece, used) if isinstance(piece, ToolCall) else piece


def _identified(call: ToolCall, used: set[str]) -> ToolCall:
    """Return the call with an id unique in its answer: some servers send none, or always the same."""
    name = call.id if call.id and call.id not in used else uuid4().hex[:9]
    used.add(name)
    return replace(call, id=name)
