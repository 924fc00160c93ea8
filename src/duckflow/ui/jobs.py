"""The current job: one at a time, which can be stopped without stopping anything else."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")
_TICK_S = 0.25


class Job:
    """Runs work, tells whether it runs, and for how long it did."""

    def __init__(self, changed: Callable[[bool], None]) -> None:
        self._changed = changed
        self._task: asyncio.Future[Any] | None = None
        self.lasted_s = 0.0

    @property
    def busy(self) -> bool:
        """Whether something is being done."""
        return self._task is not None

    async def do(self, work: Coroutine[None, None, Result]) -> Result | None:
        """Run the work; None if it was stopped."""
        self._task = task = asyncio.ensure_future(work)
        started = time.monotonic()
        ticking = asyncio.ensure_future(self._tick())
        try:
            return await task
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                task.cancel()
                await asyncio.wait([task])
                raise
            return None
        finally:
            ticking.cancel()
            self._task = None
            self.lasted_s = time.monotonic() - started
            self._changed(False)

    def stop(self) -> bool:
        """Stop it; False if nothing is being done."""
        return self._task is not None and self._task.cancel()

    async def _tick(self) -> None:
        """Call whoever draws a sign of life now and then."""
        while True:
            self._changed(True)
            await asyncio.sleep(_TICK_S)


async def stopped(work: Coroutine[None, None, Any]) -> None:
    """Let the work write down what it was told, and stop it at the first thing it would wait for."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
