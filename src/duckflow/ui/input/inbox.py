"""Messages that were typed and wait their turn."""

import asyncio
from collections.abc import Iterator


class Inbox:
    """First come, first served."""

    def __init__(self) -> None:
        self._messages: list[str] = []
        self._arrived = asyncio.Event()
        self._closed = False

    def put(self, message: str) -> None:
        """Add one."""
        self._messages.append(message)
        self._arrived.set()

    def close(self) -> None:
        """There will be no more."""
        self._closed = True
        self._arrived.set()

    async def get(self) -> str:
        """The oldest, when there is one; EOFError if none will come."""
        while not self._messages:
            if self._closed:
                raise EOFError
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.pop(0)

    def take_all(self) -> tuple[str, ...]:
        """All of them, oldest first; none is left."""
        taken, self._messages = tuple(self._messages), []
        return taken

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._messages))
