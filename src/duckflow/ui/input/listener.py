"""Who gets what is typed. Apart from the key bindings, so that it can be used without a terminal."""

import asyncio


class Listener:
    """Gets lines and the keys that mean something by themselves.

    This one listens before the engine is there: messages wait, and one may leave.
    """

    def __init__(self, left: asyncio.Event) -> None:
        self._left = left

    def handle_line(self, line: str) -> bool:
        """Act on a line at once; False if it is a message that waits its turn."""
        del line
        return False

    def stop(self) -> None:
        """Esc: stop what is being done."""

    def interrupt(self) -> None:
        """Ctrl-C: stop what is being done, clear the line, or leave."""
        self.leave()

    def leave(self) -> None:
        """Ctrl-D: end the conversation."""
        self._left.set()

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
