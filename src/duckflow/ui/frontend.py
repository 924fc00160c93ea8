"""The two frontends of the conversation: the prompt of a terminal, and plain lines without one.

Imports nothing slow but the line editor, so that the prompt is there before the engine is loaded.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.ui.input.keyboard import Keyboard, PlainKeyboard
from duckflow.ui.input.prompt_view import DrawView
from duckflow.ui.output.colours import Theme, use_theme
from duckflow.ui.output.writer import Writer

if TYPE_CHECKING:
    from duckflow.domain.session_client import SessionClient
    from duckflow.ui.input.prompt import Prompt

QUIET_S = 0.6
"""A question takes the keyboard only when nobody has typed for so long: what is typed ahead is no answer."""


@dataclass
class Frontend:
    """Where a person types and reads."""

    keyboard: Keyboard
    writer: Writer
    prompt: "Prompt | None" = None

    def attach(self, draw: DrawView, client: "SessionClient") -> None:
        """From now on draw this around the line, and suggest what the session knows."""
        if self.prompt is None:
            return
        from duckflow.ui.commands.completion import Suggestions  # noqa: PLC0415 - only a terminal completes

        self.prompt.scrollback.finish()  # what was said so far stands above it from the beginning
        self.prompt.draw = draw
        self.prompt.completer = Suggestions(client)

    def adapt(self, theme: Theme, *, vi: bool) -> None:
        """From now on use these colours and keys."""
        use_theme(theme)
        if theme == "none":
            self.writer.coloured = False
        if self.prompt is not None:
            self.prompt.adapt(theme, vi=vi)

    def signal(self, sequence: str) -> None:
        """Send something to the terminal that is not text: a bell, a notice."""
        if self.prompt is not None:
            self.prompt.output.write_raw(sequence)
            self.prompt.output.flush()


def has_terminal() -> bool:
    """Whether a line editor can be used here."""
    return sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def open_frontend(
    history: Callable[[], Path], clean: Callable[[str], str] = str, quiet_s: float = QUIET_S
) -> Frontend:
    """The frontend for this terminal, on the screen at once. `clean` makes a line fit to be kept."""
    if not has_terminal():
        keyboard = PlainKeyboard()
        keyboard.start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keyboard.interrupt)
        return Frontend(keyboard, Writer())
    from duckflow.ui.input.prompt import Prompt  # noqa: PLC0415 - takes time, and only a terminal needs it

    prompt = Prompt(history(), clean, quiet_s)
    prompt.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: prompt.listener.interrupt())  # noqa: PLW0108 - the listener changes
    writer = Writer(prompt.scrollback.write, lambda: prompt.size, formatted=True)
    return Frontend(prompt, writer, prompt)
