"""Receipts for commands to a session, and queues of updates from it."""

import asyncio
from collections import deque
from collections.abc import Generator, Iterator
from typing import Self

from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.session_client import SessionUpdate


class Receipt:
    """Receipt for a sent command; await it for the result. Cancelling the wait does not stop the command."""

    def __init__(self, command: SessionCommand, *, guest: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.command = command
        self.guest = guest
        self.taken: asyncio.Future[str] = loop.create_future()
        """Set to "" when the command begins, or to a catalogue key with the reason if it is refused."""
        self.done: asyncio.Future[SessionResult] = loop.create_future()

    def __await__(self) -> Generator[object, None, SessionResult]:
        """Wait for the result, or raise the error that the command ended in."""
        return asyncio.shield(self.done).__await__()

    def take(self) -> None:
        """Note that the command begins."""
        if not self.taken.done():
            self.taken.set_result("")

    def end(self, result: SessionResult | BaseException) -> None:
        """Set the result or the error."""
        if not self.taken.done():
            self.taken.set_result(result.objection if isinstance(result, SessionResult) else "")
        if self.done.done():
            return
        if isinstance(result, SessionResult):
            self.done.set_result(result)
        else:
            self.done.set_exception(result)
            self.done.exception()  # prevents a warning if no client waits


class UpdateQueue:
    """Queue of one client's updates: a subscriber to iterate over until it is closed."""

    def __init__(self) -> None:
        self._updates: deque[SessionUpdate] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def __call__(self, update: SessionUpdate) -> None:
        """Keep an update until the client asks for it."""
        self._updates.append(update)
        self._arrived.set()

    def pending(self) -> Iterator[SessionUpdate]:
        """Yield and remove the updates that have arrived."""
        while self._updates:
            yield self._updates.popleft()

    async def arrival(self) -> None:
        """Wait for an update, or for the end."""
        while not self._updates and not self._closed:
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """End the iteration after the last update."""
        self._closed = True
        self._arrived.set()

    def __aiter__(self) -> Self:
        """Return the iterator, which ends with the session."""
        return self

    async def __anext__(self) -> SessionUpdate:
        """Return the next update."""
        await self.arrival()
        if not self._updates:
            raise StopAsyncIteration
        return self._updates.popleft()
