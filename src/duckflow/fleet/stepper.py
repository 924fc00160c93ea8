"""Lets work go on from one pause to the next, so that what was done is known before the next thing begins."""

import asyncio
from collections import deque
from typing import Any


class Stepper:
    """A session pauses before each model call and each action; a step lets the next of them begin."""

    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._arrived = asyncio.Event()
        self._free = False

    async def pause(self) -> None:
        """Wait for the next step."""
        if self._free:
            return
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        self._arrived.set()
        await turn

    async def step(self, work: "asyncio.Future[Any]") -> bool:
        """Let one go on, until the next one waits; whether the work has ended."""
        self._release_next()
        while not work.done() and not self._waits():
            self._arrived.clear()
            arrival = asyncio.ensure_future(self._arrived.wait())
            await asyncio.wait({arrival, work}, return_when=asyncio.FIRST_COMPLETED)
            arrival.cancel()
        return work.done()

    def free(self) -> None:
        """Hold nobody any more: the work is being closed."""
        self._free = True
        while self._waiting:
            self._release_next()

    def _waits(self) -> bool:
        while self._waiting and self._waiting[0].done():  # cancelled meanwhile
            self._waiting.popleft()
        return bool(self._waiting)

    def _release_next(self) -> None:
        if self._waits():
            self._waiting.popleft().set_result(None)
