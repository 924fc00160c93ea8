"""The work on one message, for whoever started it: its updates as they come, and how it ended."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Sequence
from typing import Any, Self

from duckflow.domain.events import Recorded
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.work.outcomes import RequestOutcome

Update = Recorded | LiveUpdate
"""What a session shows: an event with its number and time, or a live update."""

Working = Coroutine[Any, Any, RequestOutcome]


class Work:
    """The work on a message: iterate over its updates, or await its outcome. It runs in any case."""

    def __init__(self, work: Working, more: Callable[[], Working | None], unseen: Sequence[Update]) -> None:
        self._updates: asyncio.Queue[Update | None] = asyncio.Queue()
        for update in unseen:
            self._updates.put_nowait(update)
        self._more = more
        self._task = self._started(work)
        self.outcome: RequestOutcome | None = None
        """How it ended; None before that."""
        self.over = False
        """Whether whoever iterates has seen all of it."""

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return not self._task.done()

    def take(self, update: Update) -> None:
        """Keep an update for whoever iterates."""
        self._updates.put_nowait(update)

    def cancel(self) -> None:
        """Stop it; its outcome is "interrupted"."""
        self._task.cancel()

    async def stop(self) -> None:
        """Stop it, and wait until it has stopped."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    def __aiter__(self) -> Self:
        """Its updates, to the end."""
        return self

    async def __anext__(self) -> Update:
        """The next update."""
        while not self.over:
            update = await self._updates.get()
            if update is not None:
                return update
            self.outcome = "interrupted" if self._task.cancelled() else self._task.result()
            following = self._more()
            if following is None:
                self.over = True
                raise StopAsyncIteration
            self._task = self._started(following)
        raise StopAsyncIteration

    def __await__(self) -> Generator[Any, None, RequestOutcome]:
        """Let it end, whatever there is to see."""
        return self._drain().__await__()

    async def _drain(self) -> RequestOutcome:
        async for _ in self:
            pass
        assert self.outcome is not None
        return self.outcome

    def _started(self, work: Working) -> asyncio.Task[RequestOutcome]:
        task = asyncio.ensure_future(work)
        task.add_done_callback(lambda _: self._updates.put_nowait(None))
        return task
