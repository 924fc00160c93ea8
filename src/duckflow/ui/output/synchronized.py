"""The terminal as it is written to: a change of the screen goes out in one piece, so nothing flickers."""

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager

from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output

_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Terminals that know these draw all that comes between at once; others do not care."""


class SynchronizedOutput(Vt100_Output):
    """Holds back what is written until a change is whole."""

    held = 0

    def flush(self) -> None:
        """Write what there is, unless more belongs to it."""
        if not self.held:
            super().flush()

    def erase_down(self) -> None:
        """Erase to the end of the screen, the line first.

        Erased in one go from the very top, tmux would keep a copy of the prompt in its history.
        """
        self.write_raw("\x1b7\x1b[K\x1b[B\x1b[J\x1b8")

    @contextmanager
    def in_one_piece(self) -> Generator[None]:
        """All that is written inside arrives together."""
        self.held += 1
        self.write_raw(_BEGIN)
        try:
            yield
        finally:
            self.write_raw(_END)
            self.held -= 1
            self.flush()


def open_output() -> SynchronizedOutput:
    """Standard output, which must be a terminal."""
    plain = ColorDepth.DEPTH_1_BIT if os.environ.get("NO_COLOR") else ColorDepth.from_env()
    output = SynchronizedOutput.from_pty(sys.stdout, os.environ.get("TERM"), plain)
    assert isinstance(output, SynchronizedOutput)
    # Asking where the cursor is costs a round trip over ssh, and the layout grows by itself.
    output.enable_cpr = False
    return output
