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
    "auto": _TERMINAL,
    "light": {**_TERMINAL, "cyan": "34", "yellow": "35", "dim": "90"},
    "dark": {**_TERMINAL, "green": "92", "red": "91", "cyan": "96", "yellow": "93", "dim": "37"},
    "none": {},
}
"""Terminal codes of the colours in each theme. Replaces colours that are hard to read on its background."""

_PLAIN = "0"
_theme: list[Theme] = ["auto"]


def use_theme(theme: Theme) -> None:
    """Use the colours of this theme from now on."""
    _theme[:] = [theme]


def code_of(colour: Colour) -> str:
    """Return the terminal's code for a colour."""
    return _CODES[_theme[0]].get(colour, _PLAIN)


def paint(shown: str, colour: Colour | None) -> str:
    """Return the text in this colour, or unchanged if there is no colour."""
    code = code_of(colour) if colour and shown else _PLAIN
    return shown if code == _PLAIN else f"\x1b[{code}m{shown}\x1b[0m"
