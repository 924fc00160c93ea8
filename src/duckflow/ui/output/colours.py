"""Colours and themes."""

from typing import Literal

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


def use_theme(theme: Theme) -> None:
    """Use the colours of this theme from now on."""
    _theme[:] = [theme]


def code_of(colour: Colour) -> str:
    """Return the terminal's code for a colour."""
    return _CODES.get(_theme[0], _TERMINAL)[colour]
