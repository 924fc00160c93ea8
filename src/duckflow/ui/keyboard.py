"""Where a person types: a line editor on a terminal, plain lines where input comes through a pipe."""

import asyncio
import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession

_LOCAL_FLAGS = 3
"""Where tcgetattr keeps whether keys are echoed."""


class LineCleared(Exception):
    """Ctrl-C at a prompt. Not KeyboardInterrupt: that one, raised in a task, ends the event loop."""


class Keyboard(Protocol):
    """Asks a person. EOFError is a wish to leave, LineCleared an empty message."""

    async def ask(self, prompt: str, typed: str = "") -> str:
        """A message; `typed` is already on the line."""
        ...

    async def ask_plainly(self, prompt: str) -> str:
        """An answer to a question just shown: keys pressed before it do not count."""
        ...

    def take_back(self) -> str:
        """End the question for a message, and give back what was typed so far."""
        ...

    def silent(self) -> AbstractContextManager[None]:
        """While this is open, keys typed ahead wait for the next question and do not show amid the output."""
        ...


class TerminalKeyboard:
    """A line editor with history."""

    def __init__(self, history: Path) -> None:
        from prompt_toolkit import PromptSession  # noqa: PLC0415 - takes time, and only a terminal needs it
        from prompt_toolkit.history import FileHistory  # noqa: PLC0415 - as above

        self._messages: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
        self._answers: PromptSession[str] = PromptSession()

    async def ask(self, prompt: str, typed: str = "") -> str:
        """A message, with what others print shown above the line."""
        from prompt_toolkit.patch_stdout import patch_stdout  # noqa: PLC0415 - as above

        with patch_stdout(raw=True):
            return await _lines_of(self._messages, prompt, typed)

    async def ask_plainly(self, prompt: str) -> str:
        """An answer; what was typed ahead is thrown away."""
        import termios  # noqa: PLC0415 - only where there is a terminal

        from prompt_toolkit.input.typeahead import clear_typeahead  # noqa: PLC0415 - as above

        clear_typeahead(self._answers.app.input)
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return await _lines_of(self._answers, prompt)

    def take_back(self) -> str:
        """End the line that is being typed."""
        app = self._messages.app
        typed = self._messages.default_buffer.text
        if app.is_running:
            app.exit(result="")
        return typed

    @contextmanager
    def silent(self) -> Generator[None]:
        """Switch the terminal's echo off for a while."""
        import termios  # noqa: PLC0415 - as above

        before = termios.tcgetattr(sys.stdin)
        quiet = [*before]
        quiet[_LOCAL_FLAGS] &= ~termios.ECHO
        termios.tcsetattr(sys.stdin, termios.TCSANOW, quiet)
        try:
            yield
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


async def _lines_of(session: "PromptSession[str]", prompt: str, typed: str = "") -> str:
    try:
        return await session.prompt_async(prompt, default=typed)
    except KeyboardInterrupt as exc:
        raise LineCleared from exc


class PipeKeyboard:
    """Lines of standard input."""

    async def ask(self, prompt: str, typed: str = "") -> str:
        """The next line."""
        sys.stdout.write(prompt + typed)
        sys.stdout.flush()
        line = await asyncio.to_thread(sys.stdin.readline)
        if not line:
            raise EOFError
        return line.rstrip("\n")

    async def ask_plainly(self, prompt: str) -> str:
        """The next line."""
        return await self.ask(prompt)

    def take_back(self) -> str:
        """A line that is being read can't be taken back."""
        return ""

    def silent(self) -> AbstractContextManager[None]:
        """A pipe echoes nothing."""
        return nullcontext()


def open_keyboard(history: Path) -> Keyboard:
    """The keyboard there is."""
    return TerminalKeyboard(history) if sys.stdin.isatty() else PipeKeyboard()
