"""Who sits at the keyboard: keys and commands that do not wait are obeyed at once, whatever goes on."""

import time

from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import MODES, CommandContext
from duckflow.ui.commands.dispatch import dispatch_command
from duckflow.ui.commands.table import find_command, read_command
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.jobs import Job

_AGAIN_S = 2.0
"""Ctrl-C twice within so long leaves."""


class KeyListener:
    """Listens to the keyboard."""

    def __init__(self, desk: CommandContext, keyboard: Keyboard, labour: Job) -> None:
        self._desk = desk
        self._keyboard = keyboard
        self._labour = labour
        self._pressed = -_AGAIN_S

    def hear(self, line: str) -> bool:
        """Obey a command that does not wait; all else waits its turn."""
        self._pressed = -_AGAIN_S  # whoever says something did not mean to leave
        typed = read_command(line)
        if typed is None:
            return False
        command = find_command(typed.name)
        if command is not None and not command.now:
            return False
        self._desk.screen.said(line)
        dispatch_command(self._desk, typed)
        return True

    def stop(self) -> None:
        """Esc: stop the work; messages that waited for it go back to the line."""
        if self._labour.stop():
            waiting = self._keyboard.inbox.take_all()
            typed = self._keyboard.swap_line("")
            self._keyboard.swap_line("\n".join([*waiting, *([typed] if typed else [])]))

    def interrupt(self) -> None:
        """Ctrl-C: stop the work, else clear the line, else, the second time, leave."""
        again = time.monotonic() - self._pressed < _AGAIN_S
        self._pressed = time.monotonic()
        if self._labour.busy and not again:
            self.stop()
        elif self._keyboard.swap_line("") and not again:
            return
        elif again:
            self.leave()
        else:
            self._desk.paper.line(text("chat.again"), "dim")

    def leave(self) -> None:
        """Ctrl-D: end the conversation."""
        self._desk.leave(None)

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""
        self._desk.screen.expand()

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
        place = MODES.index(self._desk.engine.state.mode)
        self._desk.engine.set_mode(MODES[(place + 1) % len(MODES)])
