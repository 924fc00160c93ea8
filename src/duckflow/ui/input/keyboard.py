"""Where a person types: the prompt of a terminal, or plain lines if there is no such terminal."""

import asyncio
import os
import stat
import sys
from collections.abc import Iterator

from duckflow.ui.input.prompt_view import PromptView

_CHUNK = 65_536


class Listener:
    """Receives lines and keys, and knows what to draw around the prompt.

    This one serves before the engine is loaded: messages wait, and the user may leave.
    """

    def __init__(self, left: asyncio.Event) -> None:
        self._left = left

    def view(self, columns: int) -> PromptView:
        """What is drawn around the prompt now."""
        del columns
        return PromptView()

    def handle_line(self, line: str) -> bool:
        """Act on a line at once; return False if it is a message that waits its turn."""
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

    def expand(self) -> None:
        """Ctrl-O: show the last result in full."""

    def change_mode(self) -> None:
        """Shift-Tab: change to the next mode."""


class MessageQueue:
    """Messages that were typed and wait their turn: first come, first served."""

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


class Keyboard:
    """Puts what is typed into its inbox, or lets the listener act on it at once."""

    def __init__(self) -> None:
        self.left = asyncio.Event()
        """Set when the user leaves, or the terminal is gone."""
        self.listener = Listener(self.left)
        self.inbox = MessageQueue()

    async def answer(self, question: str, prefilled: str = "") -> str | None:
        """The answer to a question just shown; keys pressed before it do not count. None for no answer."""
        raise NotImplementedError

    async def stop(self) -> None:
        """Read no more."""
        raise NotImplementedError

    def swap_line(self, typed: str) -> str:
        """Put this on the line, if there is one, and give back what was being typed there."""
        del typed
        return ""

    def refresh(self) -> None:
        """Draw what is around the line again, if anything is."""


class PlainKeyboard(Keyboard):
    """Lines of standard input: a pipe, a file, or a terminal that can only print."""

    def __init__(self) -> None:
        super().__init__()
        self._terminal = sys.stdin.isatty()
        self._begun = b""
        self._asked: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Begin to read."""
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
        """Read no more."""
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())

    def interrupt(self) -> None:
        """Ctrl-C: an open question gets no answer, else the listener is told."""
        if self._asked is not None and not self._asked.done():
            self._asked.set_result(None)
        else:
            self.listener.interrupt()

    async def answer(self, question: str, prefilled: str = "") -> str | None:
        """The next line; on a terminal, one that is typed from now on."""
        del prefilled
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
        """Commands typed at a terminal act at once; lines of a pipe, and answers, keep their order."""
        if self._asked is not None or not (self._terminal and self.listener.handle_line(line)):
            self.inbox.put(line)
