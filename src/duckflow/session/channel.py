"""The two ways between a session and its clients: commands with their receipts, and updates."""

import asyncio
from collections import deque
from collections.abc import Callable, Generator, Iterator
from typing import Self

from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.session_client import SessionUpdate

UpdateSubscriber = Callable[[SessionUpdate], None]


class Receipt:
    """Await it for the result of the command. Giving up waiting does not stop the command."""

    def __init__(self, command: SessionCommand, *, guest: bool = False) -> None:
        loop = asyncio.get_running_loop()
        self.command = command
        self.guest = guest
        self.taken: asyncio.Future[str] = loop.create_future()
        """Done when the command begins, with an empty text, or is refused, with a catalogue key."""
        self.done: asyncio.Future[SessionResult] = loop.create_future()

    def __await__(self) -> Generator[object, None, SessionResult]:
        """Wait for the result; raises what the command ended in."""
        return asyncio.shield(self.done).__await__()

    def take(self) -> None:
        """The command begins."""
        if not self.taken.done():
            self.taken.set_result("")

    def end(self, result: SessionResult | BaseException) -> None:
        """Tell whoever waits; an error reaches only those."""
        if not self.taken.done():
            self.taken.set_result(result.objection if isinstance(result, SessionResult) else "")
        if self.done.done():
            return
        if isinstance(result, SessionResult):
            self.done.set_result(result)
        else:
            self.done.set_exception(result)
            self.done.exception()  # a client that sends without waiting need not know


class UpdateQueue:
    """One client's updates, in order: taken as a subscriber, given as an iterator until it is closed."""

    def __init__(self) -> None:
        self._updates: deque[SessionUpdate] = deque()
        self._arrived = asyncio.Event()
        self._closed = False

    def __call__(self, update: SessionUpdate) -> None:
        """Keep an update until the client asks for it."""
        self._updates.append(update)
        self._arrived.set()

    def pending(self) -> Iterator[SessionUpdate]:
        """Everything that has arrived, without waiting for more."""
        while self._updates:
            yield self._updates.popleft()

    async def arrival(self) -> None:
        """Come back when something has arrived, or nothing more will."""
        while not self._updates and not self._closed:
            self._arrived.clear()
            await self._arrived.wait()

    def close(self) -> None:
        """End the iteration after what has arrived."""
        self._closed = True
        self._arrived.set()

    def __aiter__(self) -> Self:
        """Iterate to the end of the session."""
        return self

    async def __anext__(self) -> SessionUpdate:
        """The next update."""
        await self.arrival()
        if not self._updates:
            raise StopAsyncIteration
        return self._updates.popleft()


class Broadcast:
    """Shows every update to all subscribers."""

    def __init__(self, *subscribers: UpdateSubscriber) -> None:
        self._subscribers = [*subscribers]

    def subscribe(self, subscriber: UpdateSubscriber) -> None:
        """Show it everything from now on."""
        self._subscribers.append(subscriber)

    def __call__(self, update: SessionUpdate) -> None:
        """Show one update."""
        for subscriber in self._subscribers:
            subscriber(update)

    def close(self) -> None:
        """End the queues among the subscribers."""
        for subscriber in self._subscribers:
            if isinstance(subscriber, UpdateQueue):
                subscriber.close()
