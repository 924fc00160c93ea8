"""Colour for those who want it: on a terminal, unless NO_COLOR is set."""

import os
from typing import Literal, TextIO

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
    "auto": _TERMINAL,
    "light": {**_TERMINAL, "cyan": "34", "yellow": "35", "dim": "90"},
    "dark": {**_TERMINAL, "green": "92", "red": "91", "cyan": "96", "yellow": "93", "dim": "37"},
    "none": {},
}
"""The eight colours every terminal has; yellow and cyan can't be read on white, the darker ones on black."""

_PLAIN = "0"
_theme: list[Theme] = ["auto"]
_DIFFERENCE: dict[str, Colour] = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
"""By how a line of a difference begins; the first that fits counts."""


def use_theme(theme: Theme) -> None:
    """From now on colours are those of this theme."""
    _theme[:] = [theme]


def code_of(colour: Colour) -> str:
    """What a terminal is told for this colour."""
    return _CODES[_theme[0]].get(colour, _PLAIN)


def wanted(out: TextIO) -> bool:
    """Whether colour should be written there."""
    return out.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(shown: str, colour: Colour | None) -> str:
    """The text in this colour, if it has one."""
    code = code_of(colour) if colour and shown else _PLAIN
    return shown if code == _PLAIN else f"\x1b[{code}m{shown}\x1b[0m"


def difference_colour(line: str) -> Colour | None:
    """The usual colour of a line of a difference."""
    return next((colour for beginning, colour in _DIFFERENCE.items() if line.startswith(beginning)), None)
