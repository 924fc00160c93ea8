"""Keyboards: the interface, the queue of typed messages, and the plain keyboard for pipes and files."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterator

from duckflow.ui.input.picker import Pick
from duckflow.ui.input.prompt_view import PromptView

_CHUNK = 65_536


class Listener:
    """Receives lines and keys, and returns lines to draw. This one is used until the engine is loaded."""

    def __init__(self, left: asyncio.Event) -> None:
        self._left = left

    def view(self, columns: int) -> PromptView:
        """Return the lines to draw around the prompt."""
        del columns
        return PromptView()

    def handle_line(self, line: str) -> bool:
        """Act on a line at once. Return False if it is a message, which waits until the work has ended."""
        del line
        return False

    def stop(self) -> None:
        """Esc: stop the work."""

    def interrupt(self) -> None:
        """Ctrl-C: stop the work, clear the line, or leave."""
        self.leave()

    def leave(self) -> None:
        """Ctrl-D: end the conversation."""
        self._left.set()

    async def paste_picture(self) -> bytes | None:
        """Ctrl-V: return the picture in the clipboard, None if there is none."""
        return None

    def expand(self) -> None:
        """Ctrl-O: show the last result in full."""

    def change_mode(self) -> None:
        """Shift-Tab: change to the next mode."""


class MessageQueue:
    """Queue of typed messages."""

    def __init__(self) -> None:
        self._messages: list[str] = []
        self._arrived = asyncio.Event()
        self._closed = False

    def put(self, message: str) -> None:
        """Add a message."""
        self._messages.append(message)
        self._arrived.set()

    def close(self) -> None:
        """End the queue: once it is empty, `get` raises EOFError."""
        self._closed = True
        self._arrived.set()

    async def get(self) -> str:
        """Wait for the oldest message, and remove it. Raise EOFError if the queue is closed and empty."""
        while not self._messages:
            if self._closed:
                raise EOFError
            self._arrived.clear()
            await self._arrived.wait()
        return self._messages.pop(0)

    def take_all(self) -> tuple[str, ...]:
        """Remove and return all messages, oldest first."""
        taken, self._messages = tuple(self._messages), []
        return taken

    def __iter__(self) -> Iterator[str]:
        return iter(tuple(self._messages))


class Keyboard:
    """Puts typed lines into its message queue, unless the listener acts on them at once."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        """Set when the user leaves or the terminal closes."""
        self.listener = Listener(self.left)
        self.inbox = MessageQueue()
        self.pictures: dict[str, tuple[bytes, ...]] = {}
        """Pictures that were pasted into typed lines, by line."""

    async def answer(self, question: str, prefilled: str = "", *, again: bool = False) -> str | None:
        """Return the answer to the question just shown, or None. Keys that were typed before do not count.

        If the same question is asked `again`, it takes the keyboard at once.
        """
        raise NotImplementedError

    async def pick(self, wanted: Pick) -> str | None:
        """Let the user choose from a list. Return the chosen line, None if the user leaves the list."""
        raise NotImplementedError

    @property
    def picks(self) -> bool:
        """True if the keyboard can show a list to choose from."""
        return False

    async def stop(self) -> None:
        """Stop reading."""
        raise NotImplementedError

    def swap_line(self, typed: str) -> str:
        """Replace the text on the input line, and return the old text."""
        del typed
        return ""

    def refresh(self) -> None:
        """Redraw the lines around the prompt."""


class PlainKeyboard(Keyboard):
    """Keyboard that reads lines from standard input: a pipe, a file, or a simple terminal."""

    def __init__(self) -> None:
        super().__init__()
        self._terminal = sys.stdin.isatty()
        self._begun = b""
        self._asked: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Start reading."""
        descriptor = sys.stdin.fileno()
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            self._take(sys.stdin.buffer.read())
            self._end()
            return
        try:
            asyncio.get_running_loop().add_reader(descriptor, self._read)
        except PermissionError:  # a device that can't be waited for, such as /dev/null
            self._end()

    async def stop(self) -> None:
        """Stop reading."""
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def interrupt(self) -> None:
        """Ctrl-C: end an open question without an answer, or else interrupt the listener."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)
        else:
            self.listener.interrupt()

    async def answer(self, question: str, prefilled: str = "", *, again: bool = False) -> str | None:
        """Return the next line. On a terminal, lines that were typed before do not count."""
        del prefilled, again
        earlier = self.inbox.take_all() if self._terminal else ()
        sys.stdout.write(question)
        sys.stdout.flush()
        self._asked = asyncio.get_running_loop().create_future()
        line = asyncio.ensure_future(self.inbox.get())
        try:
            await asyncio.wait({line, self._asked}, return_when=asyncio.FIRST_COMPLETED)
            return line.result() if line.done() else None
        except EOFError:
            return None
        finally:
            line.cancel()
            self._asked = None
            for message in earlier:
                self.inbox.put(message)

    def _read(self) -> None:
        try:
            got = os.read(sys.stdin.fileno(), _CHUNK)
        except OSError:
            got = b""
        self._take(got)
        if not got:
            asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
            self._end()

    def _take(self, got: bytes) -> None:
        *lines, self._begun = (self._begun + got).split(b"\n")
        for line in lines:
            self._receive(line.decode(errors="replace").strip())

    def _end(self) -> None:
        if self._begun:
            self._receive(self._begun.decode(errors="replace").strip())
        self.inbox.close()

    def _receive(self, line: str) -> None:
        """Run slash commands from a terminal at once. Queue all other lines, in order."""
        if self._asked is not None or not (self._terminal and self.listener.handle_line(line)):
            self.inbox.put(line)
