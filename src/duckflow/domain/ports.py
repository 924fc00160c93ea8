"""Protocols, only where two implementations exist (a fake counts)."""

from collections.abc import AsyncIterator, Sequence
from typing import Protocol

from duckflow.domain.events import Event, Recorded
from duckflow.domain.model import ModelPiece, ModelRequest, ModelTraits


class ModelClient(Protocol):
    """One language model. Raises `ProviderError` (or `Unavailable`, worth a retry) and nothing else."""

    @property
    def traits(self) -> ModelTraits:
        """What the prompts need to know of it."""
        ...

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPiece]:
        """The answer, piece by piece, ending with `Finished`. Closing the iterator stops the model."""
        ...

    async def aclose(self) -> None:
        """Give back connections, threads and memory."""
        ...


class EventLog(Protocol):
    """Where a session's events are kept; what `append` returned survives a kill."""

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[Recorded]:
        """Store all of them durably, in order, or none."""
        ...

    def load(self, session_id: str) -> Sequence[Recorded]:
        """Every event of the session, oldest first."""
        ...
