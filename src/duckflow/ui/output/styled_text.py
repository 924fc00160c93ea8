"""Styled text that can be wrapped: a change of style is a character without width until it is drawn."""

from collections.abc import Iterator
from typing import Literal

from duckflow.ui.output.colours import code_of
from duckflow.ui.output.text_width import wrap

Style = Literal["bold", "italic", "strike", "code", "link", "heading"]

_CODES: dict[Style, str] = {
    "bold": "1",
    "italic": "3",
    "strike": "9",
    "code": "{colour}",
    "link": "4",
    "heading": "1;{colour}",
}
_ORDER = tuple(_CODES)
_OPEN, _CLOSE = 0x10FF00, 0x10FF80


def styled(text: str, style: Style) -> str:
    """The text with marks around it."""
    place = _ORDER.index(style)
    return f"{chr(_OPEN + place)}{text}{chr(_CLOSE + place)}"


def without_marks(text: str) -> str:
    """A text from outside, without anything that could pass for a mark."""
    return text if text.isascii() else "".join(one if ord(one) < _OPEN else "\ufffd" for one in text)


def lines_of(text: str, columns: int, *, coloured: bool) -> list[str]:
    """The text in lines that fit, its marks turned into colours; each line ends in plain style."""
    return list(_painted(wrap(text, max(columns, 8)), coloured=coloured))


def _painted(wrapped: str, *, coloured: bool) -> Iterator[str]:
    current: list[Style] = []
    for line in wrapped.split("\n"):
        shown = "".join(_code(style) for style in current) if coloured else ""
        for character in line:
            if ord(character) < _OPEN:
                shown += character
                continue
            _change(current, ord(character))
            if coloured:
                shown += "\x1b[0m" + "".join(_code(style) for style in current)
        yield shown + ("\x1b[0m" if coloured and current else "")


def _change(current: list[Style], mark: int) -> None:
    if mark >= _CLOSE:
        style = _ORDER[mark - _CLOSE]
        if style in current:
            current.remove(style)
    else:
        current.append(_ORDER[mark - _OPEN])


def _code(style: Style) -> str:
    colour = code_of("cyan")
    return f"\x1b[{_CODES[style].format(colour=colour)}m"
