"""A model behind an address that streams events: one client for all wire formats."""

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
    """An answer that is put together from the events of its stream."""

    ended: bool

    def add(self, data: str) -> Iterable[ModelPiece]:
        """Take an event in and return its text and thinking. Raises ValueError for what is none, or
        StreamedError."""
        ...

    def rest(self) -> Iterable[ModelPiece]:
        """Return what is known only at the end: calls, thoughts and the end itself."""
        ...


class WireFormat(NamedTuple):
    """What one provider's requests and answers look like."""

    path: str
    headers: Callable[[str], Mapping[str, str]]
    """By the key, which may be empty."""
    body: Callable[[Endpoint, ModelTraits, ModelRequest], dict[str, Any]]
    response: Callable[[str], WireResponse]
    """By the model's full name, which its thoughts bear."""
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
    """A call under an id that no other call of its answer has: some servers give none, or always the same."""
    name = call.id if call.id and call.id not in used else uuid4().hex[:9]
    used.add(name)
    return replace(call, id=name)
