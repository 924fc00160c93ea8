"""Where a person types: a line editor on a terminal, plain lines where input comes through a pipe."""

import asyncio
import sys
import termios
from collections.abc import Awaitable, Callable
from pathlib import Path

Ask = Callable[[str], Awaitable[str]]


def open_keyboard(history: Path) -> tuple[Ask, Ask]:
    """Two ways to ask: for a message (with history), and for an answer (typed-ahead keys do not count)."""
    if not sys.stdin.isatty():
        return _ask_pipe, _ask_pipe
    from prompt_toolkit import PromptSession  # noqa: PLC0415 - takes time, and only a terminal needs it
    from prompt_toolkit.history import FileHistory  # noqa: PLC0415
    from prompt_toolkit.input.typeahead import clear_typeahead  # noqa: PLC0415

    messages: PromptSession[str] = PromptSession(history=FileHistory(str(history)))
    answers: PromptSession[str] = PromptSession()

    async def ask(prompt: str) -> str:
        return await messages.prompt_async(prompt)

    async def ask_plainly(prompt: str) -> str:
        clear_typeahead(answers.app.input)
        termios.tcflush(sys.stdin, termios.TCIFLUSH)
        return await answers.prompt_async(prompt)

    return ask, ask_plainly


async def _ask_pipe(prompt: str) -> str:
    sys.stdout.write(prompt)
    sys.stdout.flush()
    line = await asyncio.to_thread(sys.stdin.readline)
    if not line:
        raise EOFError
    return line.rstrip("\n")
