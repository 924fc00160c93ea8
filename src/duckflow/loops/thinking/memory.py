"""Long-term memory: recalled when a request begins, and extended, without a model, when it ends (L2)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass

from duckflow.domain.events import MemoryKept, MemoryRecalled
from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelTraits
from duckflow.domain.state import Request
from duckflow.domain.text import cut, one_line
from duckflow.domain.work.memory import LONGEST_MEMORY
from duckflow.domain.work.objective import AttemptResult, TaskObjective
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.loops.session import SessionPart
from duckflow.store.memory import Memories

MOST_MEMORIES = 500
"""Largest number of memories; those that were unused for the longest time are dropped first."""

_REQUEST, _HOW, _FILES = 80, 90, 3
_LATELY = 40
"""Number of newest transcript entries in which a memory is not repeated."""


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
        lesson = lesson_of(request) if outcome == "done" and self._enabled else None
        return (MemoryKept(kind="worked", text=lesson, workspace=self._state.workspace),) if lesson else ()


def lesson_of(request: Request) -> str | None:
    """Return one line on what was wrong and what cured it. None if no check showed both (L2)."""
    *failed, last = request.objective.attempts or (AttemptResult(number=0),)
    if not last.done or not any(one.changed for one in last.tried):
        return None
    wrong = next(_cured(request.objective, [line for one in reversed(failed) for line in one.lessons]), "")
    files = ", ".join(path for path in request.changed[-_FILES:] if not is_cache(path))
    cure = f"{last.strategy} ({files})" if last.strategy else files
    asked = one_line(request.text, _REQUEST)
    return cut(f"{asked} → ✗ {cut(wrong, _HOW)} ✓ {cut(cure, _HOW)}", LONGEST_MEMORY) if wrong else None


def _cured(objective: TaskObjective, lessons: Sequence[str]) -> Iterator[str]:
    """Yield what earlier verdicts found failing when it ran, and what has passed at the last verdict."""
    for check in objective.checks:
        said = replace(check, state="failed", detail="").text
        found = (line for line in lessons if check.good and line.startswith(said))
        yield from (f"{check.name}{line.removeprefix(said)}" for line in found)
