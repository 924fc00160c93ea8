"""Who gets what is typed. Apart from the key bindings, so that it can be used without a terminal."""

import asyncio
from typing import Protocol


class Listener(Protocol):
    """Gets lines and the keys that mean something by themselves."""

    def handle_line(self, line: str) -> bool:
        """Act on a line at once; False if it is a message that waits its turn."""
        ...

    def stop(self) -> None:
        """Esc: stop what is being done."""
        ...

    def interrupt(self) -> None:
        """Ctrl-C: stop what is being done, clear the line, or leave."""
        ...

    def leave(self) -> None:
        """Ctrl-D: end the conversation."""
        ...

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""
        ...

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
        ...


class NullListener:
    """Listens before the engine is there: messages wait, and one may leave."""

    def __init__(self, left: asyncio.Event) -> None:
        self._left = left

    def handle_line(self, line: str) -> bool:
        """Everything waits."""
        del line
        return False

    def stop(self) -> None:
        """Nothing is being done."""

    def interrupt(self) -> None:
        """Leave."""
        self._left.set()

    def leave(self) -> None:
        """Leave."""
        self._left.set()

    def expand(self) -> None:
        """There is no result yet."""

    def change_mode(self) -> None:
        """There is no mode yet."""
