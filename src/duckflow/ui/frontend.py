"""Opens the frontend of a conversation: a line editor on a terminal, or plain lines.

Imports nothing slow except the line editor, so that the prompt appears before the engine is loaded.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from duckflow.ui.input.keyboard import Keyboard, PlainKeyboard
from duckflow.ui.output.escaping import on_one_line, visible
from duckflow.ui.output.writer import Theme, Writer, use_theme

if TYPE_CHECKING:
    from duckflow.domain.session_client import SessionClient
    from duckflow.ui.input.prompt import Prompt

Notices = Literal["auto", "off", "bell", "desktop"]
_SHOW_NOTICES = ("iTerm.app", "WezTerm", "ghostty", "xterm-kitty", "xterm-ghostty")
"""Terminals that show the notices of OSC 9, by TERM_PROGRAM or TERM."""
_WITHOUT_TITLE = ("linux", "eterm-color")
QUIET_S = 0.6
"""Pause in typing, in seconds, after which a question takes the keyboard: earlier keys are no answer."""


@dataclass
class Frontend:
    """Keyboard and writer of one conversation."""

    keyboard: Keyboard
    writer: Writer
    prompt: "Prompt | None" = None
    notices: Notices = "off"
    _title: str = ""

    def attach(self, client: "SessionClient") -> None:
        """Suggest names from this session while the user types."""
        if self.prompt is None:
            return
        from duckflow.ui.commands.completion import Suggestions  # noqa: PLC0415 - only a terminal completes

        self.prompt.scrollback.finish()  # write earlier lines first, so that they stand above the prompt
        self.prompt.completer = Suggestions(client)

    def adapt(self, theme: Theme, *, vi: bool, notices: Notices = "off") -> None:
        """Use these colours, key bindings and kind of notification from now on."""
        use_theme(theme)
        self.notices = notices
        if theme == "none":
            self.writer.coloured = False
        if self.prompt is not None:
            self.prompt.adapt(theme, vi=vi)

    def notify(self, said: str) -> None:
        """Alert the user by bell or desktop notification."""
        known = {os.environ.get("TERM_PROGRAM"), os.environ.get("TERM")} & {*_SHOW_NOTICES}
        notices = ("desktop" if known else "off") if self.notices == "auto" else self.notices
        sequence = {"off": "", "bell": "\a", "desktop": f"\x1b]9;{visible(said)}\x07"}[notices]
        if sequence:
            self._send(sequence)

    def entitle(self, title: str) -> None:
        """Show this as the title of the terminal; an empty one brings back the title from before."""
        if title != self._title and os.environ.get("TERM") not in _WITHOUT_TITLE:
            save = "" if self._title else "\x1b[22;2t"
            self._send(f"{save}\x1b]2;{on_one_line(title)}\x1b\\" if title else "\x1b]2;\x1b\\\x1b[23;2t")
            self._title = title

    def _send(self, sequence: str) -> None:
        if self.prompt is not None:
            self.prompt.output.write_raw(sequence)
            self.prompt.output.flush()


def open_frontend(
    history: Callable[[], Path], clean: Callable[[str], str] = str, quiet_s: float = QUIET_S
) -> Frontend:
    """Open the frontend for this terminal. `clean` removes secrets from lines before they are stored."""
    editable = sys.stdin.isatty() and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    if not editable:
        keyboard = PlainKeyboard()
        keyboard.start()
        asyncio.get_running_loop().add_signal_handler(signal.SIGINT, keyboard.interrupt)
        return Frontend(keyboard, Writer())
    from duckflow.ui.input.prompt import Prompt  # noqa: PLC0415 - takes time, and only a terminal needs it

    prompt = Prompt(history(), clean, quiet_s)
    prompt.start()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, lambda: prompt.listener.interrupt())  # noqa: PLW0108 - the listener changes
    writer = Writer(prompt.scrollback.write, lambda: prompt.size, formatted=True, clear=prompt.clear)
    return Frontend(prompt, writer, prompt)
