"""Colour for those who want it: on a terminal, unless NO_COLOR is set."""

import os
from typing import Literal, TextIO

Colour = Literal["green", "red", "cyan", "yellow", "dim", "bold"]

_CODES: dict[Colour, str] = {
    "green": "32",
    "red": "31",
    "cyan": "36",
    "yellow": "33",
    "dim": "2",
    "bold": "1",
}
_DIFFERENCE: dict[str, Colour] = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
"""By how a line of a difference begins; the first that fits counts."""


def wanted(out: TextIO) -> bool:
    """Whether colour should be written there."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(shown: str, colour: Colour) -> str:
    """The text in this colour."""
    return f"\x1b[{_CODES[colour]}m{shown}\x1b[0m"


def difference_colour(line: str) -> Colour | None:
    """The usual colour of a line of a difference."""
    return next((colour for beginning, colour in _DIFFERENCE.items() if line.startswith(beginning)), None)


def paint_difference(difference: str) -> str:
    """A difference with its lines in the usual colours."""
    return "\n".join(_painted(line, difference_colour(line)) for line in difference.split("\n"))


def _painted(line: str, colour: Colour | None) -> str:
    return paint(line, colour) if colour else line
