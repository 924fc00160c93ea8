"""Standard output as a person reads it: broken at words, in colour, with a sign of life while nothing comes.

Through a pipe it is plain text, and nothing is added to it.
"""

import asyncio
import shutil
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager

from duckflow.i18n.catalogue import text
from duckflow.ui.colours import Colour, paint, wanted
from duckflow.ui.lines import harmless
from duckflow.ui.wrapping import Wrapping

_QUIET_S = 1.0
"""After so long without output, and every so often from then on, the sign is shown anew."""


class Paper:
    """Where the conversation is written down."""

    def __init__(self) -> None:
        self._terminal = sys.stdout.isatty()
        self.coloured = wanted(sys.stdout)
        self._wrapping = Wrapping()
        self._written = time.monotonic()
        self._since: float | None = None
        self._signed_at: int | None = None

    def run(self, piece: str) -> None:
        """Go on with running text."""
        piece = harmless(piece)
        self._write(self._wrapping.feed(piece, self._columns()) if self._terminal else piece)

    def end(self) -> None:
        """End running text; what comes next stands on a line of its own."""
        self._write(self._wrapping.end(self._columns()) + "\n")
        self._wrapping = Wrapping()

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """One paragraph."""
        shown = harmless(shown)
        if self._terminal:
            wrapping, columns = Wrapping(), self._columns()
            shown = wrapping.feed(shown, columns) + wrapping.end(columns)
        self.raw(paint(shown, colour) if colour and self.coloured else shown)

    def raw(self, shown: str) -> None:
        """Lines that are to stay exactly as they are."""
        self._write(f"{shown}\n")

    @asynccontextmanager
    async def waiting(self) -> AsyncGenerator[None]:
        """While this is open, silence on a terminal is filled with a line that says how long it lasts."""
        if not self._terminal:
            yield
            return
        self._since = time.monotonic()
        ticking = asyncio.ensure_future(self._tick())
        try:
            yield
        finally:
            ticking.cancel()
            self._since = None
            self._write("")

    @contextmanager
    def quiet(self) -> Generator[None]:
        """While this is open no sign is shown: somebody types."""
        self._write("")
        since, self._since = self._since, None
        try:
            yield
        finally:
            self._since = since

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(_QUIET_S)
            if time.monotonic() - self._written >= _QUIET_S:
                self.sign()

    def sign(self) -> None:
        """Show the sign on the line below what is written; it leaves no trace once more is written."""
        if self._since is None:
            return
        sign = text("chat.thinking", seconds=round(time.monotonic() - self._since))
        before = self._erased() + self._wrapping.end(self._columns())
        below = "\n" if self._wrapping.column else "\r"
        sys.stdout.write(before + below + (paint(sign, "dim") if self.coloured else sign))
        sys.stdout.flush()
        self._signed_at = self._wrapping.column

    def _erased(self) -> str:
        """What takes the sign away and brings the cursor back to where the text ended."""
        column, self._signed_at = self._signed_at, None
        if column is None:
            return ""
        return "\r\x1b[2K" + (f"\x1b[A\x1b[{column}C" if column else "")

    def _write(self, characters: str) -> None:
        sys.stdout.write(self._erased() + characters)
        sys.stdout.flush()
        self._written = time.monotonic()

    def _columns(self) -> int:
        return shutil.get_terminal_size().columns
