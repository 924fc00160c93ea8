"""Writes and colours the output of the conversation: above the prompt, or to standard output."""

import os
import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Literal

from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.text_width import wrap_hanging

Colour = Literal["green", "red", "cyan", "yellow", "dim", "bold"]
Theme = Literal["auto", "light", "dark", "none"]

_TERMINAL: dict[Colour, str] = {
    "green": "32",
    "red": "31",
    "cyan": "36",
    "yellow": "33",
    "dim": "2",
    "bold": "1",
}
_CODES: dict[Theme, dict[Colour, str]] = {
    "light": {**_TERMINAL, "cyan": "34", "yellow": "35", "dim": "90"},
    "dark": {**_TERMINAL, "green": "92", "red": "91", "cyan": "96", "yellow": "93", "dim": "37"},
}
"""Terminal codes of the themes that replace colours which are hard to read on their background."""

_theme: list[Theme] = ["auto"]


def print_lines(texts: Iterable[str]) -> None:
    """Write lines to standard output at once."""
    for text in texts:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


def use_theme(theme: Theme) -> None:
    """Use the colours of this theme from now on."""
    _theme[:] = [theme]


def code_of(colour: Colour) -> str:
    """Return the terminal's code for a colour."""
    return _CODES.get(_theme[0], _TERMINAL)[colour]


class Writer:
    """Writes whole lines. On a terminal they are `formatted`: wrapped, and possibly coloured."""

    def __init__(
        self,
        write: Callable[[Iterable[str]], None] = print_lines,
        size: Callable[[], tuple[int, int]] = shutil.get_terminal_size,
        *,
        formatted: bool = False,
        clear: Callable[[], None] | None = None,
    ) -> None:
        self._clear = clear
        self.write = write
        """Function that writes texts as they are. It computes each text only when it is written."""
        self._size = size
        self.formatted = formatted
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" or not sys.stdout.isatty()
        self.coloured = formatted and not plain

    @property
    def columns(self) -> int:
        """Width of the terminal in columns; a guess if the output is a pipe."""
        return self._size()[0]

    @property
    def rows(self) -> int:
        """Height of the terminal in rows."""
        return self._size()[1]

    def raw(self, *texts: str) -> None:
        """Write lines as they are."""
        self.write(texts)

    def clear(self) -> None:
        """Clear the screen of a terminal; earlier output stays in its history."""
        if self._clear is not None:
            self._clear()

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """Write a paragraph."""
        self.raw("\n".join(self.drawn(shown, colour)))

    def drawn(self, shown: str, colour: Colour | None) -> list[str]:
        """Return a paragraph as lines, wrapped if the output is formatted."""
        lines = harmless(shown).split("\n")
        if self.formatted:
            lines = [row for line in lines for row in wrap_hanging(line, self.columns).split("\n")]
        return [self.painted(line, colour) for line in lines]

    def painted(self, shown: str, colour: Colour | None) -> str:
        """Return the text in this colour, if colours are on."""
        if not (self.coloured and colour and shown):
            return shown
        return f"\x1b[{code_of(colour)}m{shown}\x1b[0m"
