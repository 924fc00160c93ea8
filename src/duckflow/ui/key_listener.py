"""What keys and commands do that act at once, whatever else is going on."""

import time

from duckflow.domain.commands import CancelWork, SetMode
from duckflow.domain.modes import MODES
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext, commands_alone
from duckflow.ui.commands.dispatch import dispatch_command
from duckflow.ui.commands.table import find_command, find_custom, read_command
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.input.listener import Listener

_AGAIN_S = 2.0
"""Ctrl-C twice within so long leaves."""


class KeyListener(Listener):
    """Runs commands that do not wait, and stops, leaves, expands and changes the mode by key."""

    def __init__(self, context: CommandContext, keyboard: Keyboard) -> None:
        super().__init__(keyboard.left)
        self._context = context
        self._keyboard = keyboard
        self._client = context.client
        self._pressed = -_AGAIN_S

    def handle_line(self, line: str) -> bool:
        """Run a command that need not wait; everything else waits its turn."""
        self._pressed = -_AGAIN_S  # someone who types a line did not mean to leave
        typed = read_command(line)
        if typed is None or find_custom(line, self._client.extensions.commands) is not None:
            return False
        command = find_command(typed.name)
        if command is not None and not command.now:
            return False
        if command is not None and command.name == "cancel" and commands_alone(self._client.state):
            return False
        self._context.screen.said(line)
        dispatch_command(self._context, typed)
        return True

    def stop(self) -> None:
        """Esc: stop the work; messages that waited for it go back to the line."""
        if self._client.busy:
            self._client.send(CancelWork())
            waiting = self._keyboard.inbox.take_all()
            typed = self._keyboard.swap_line("")
            self._keyboard.swap_line("\n".join([*waiting, *([typed] if typed else [])]))

    def interrupt(self) -> None:
        """Ctrl-C: stop the work, else clear the line, else, the second time, leave."""
        again = time.monotonic() - self._pressed < _AGAIN_S
        self._pressed = time.monotonic()
        if self._client.busy and not again:
            self.stop()
        elif self._keyboard.swap_line("") and not again:
            return
        elif again:
            self.leave()
        else:
            self._context.writer.line(text("chat.again"), "dim")

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""
        self._context.screen.expand()

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
        place = MODES.index(self._client.state.mode)
        self._client.send(SetMode(mode=MODES[(place + 1) % len(MODES)]))
