"""Long-term memory: recalled when a request begins, and extended, without a model, when it ends (L2)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from duckflow.domain.events import MemoryKept, MemoryRecalled
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import Request
from duckflow.domain.text import cut, one_line
from duckflow.domain.work.memory import LONGEST_MEMORY, MemoryKind
from duckflow.domain.work.objective import AttemptResult
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.loops.session import SessionPart
from duckflow.store.memory import Memories

MOST_MEMORIES = 500
"""Largest number of memories; those that were unused for the longest time are dropped first."""

_REQUEST, _HOW = 80, 90
_LATELY = 40
"""Number of newest transcript entries in which a memory is not repeated."""
_KINDS: dict[RequestOutcome, MemoryKind] = {"done": "worked", "accepted": "accepted", "stopped": "failed"}


@dataclass(eq=False)
class SessionMemory(SessionPart):
    """Recalls memories and learns new ones, if the settings allow it."""

    _memories: Memories
    _traits: Callable[[], Awaitable[ModelTraits]]
    _enabled: bool

    async def recall(self, text: str) -> None:
        """Show the model the memories related to the message, once. A small model has no room for them."""
        if not self._enabled or (await self._traits()).small:
            return
        state = self._state
        found = await asyncio.to_thread(self._memories.recall, text, state.workspace, MOST_MEMORIES)
        lately = [entry.text for entry in state.transcript[-_LATELY:]]
        news = tuple(one.text for one in found if not any(one.text in told for told in lately))
        if news:
            self._session.record(MemoryRecalled(texts=news))

    def learned(self, request: Request, outcome: RequestOutcome) -> tuple[MemoryKept, ...]:
        """Return the lesson of a request that ends, if it has one."""
        kind = _KINDS.get(outcome)
        if kind is None or not self._enabled or (lesson := lesson_of(request)) is None:
            return ()
        return (MemoryKept(kind=kind, text=lesson, workspace=self._state.workspace),)


def lesson_of(request: Request) -> str | None:
    """Return one line on what failed and what worked. None if nothing failed."""
    attempts = request.objective.attempts
    if not any(not one.done for one in attempts):
        return None
    asked = one_line(request.text, _REQUEST)
    return cut(f"{asked} → {'; '.join(_told(attempts))}", LONGEST_MEMORY)


def _told(attempts: tuple[AttemptResult, ...]) -> Iterator[str]:
    """Yield the last failure and the success, marked by signs instead of words."""
    failed = [one for one in attempts if not one.done]
    for one in (*failed[-1:], *(one for one in attempts[-1:] if one.done)):
        how = one.strategy or "; ".join(one.lessons)
        mark = "✓" if one.done else "✗"
        yield cut(f"{mark} {one.score:.2f} {how}".rstrip(), _HOW)
