"""Width of text on a terminal, and line breaking for words and for Japanese."""

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from duckflow.domain.patterns import lazy_regex

_NEVER_AT_LINE_START = frozenset(
    "、。，．・：；？！」』）】〉》”’ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々…｡｣､･ｰﾞﾟ.,:;!?)]}'\"%"
)
_NEVER_AT_LINE_END = frozenset("「『（【〈《“‘｢([{")
_MARKS = "\U0010ff00"
"""First of the characters that mark a change of style. They have no width."""
_BEGINNING = lazy_regex(r" *(?:(?:\d{1,2}\.|[^\w\s]{1,2}) )?")
"""Beginning of a line before its text: blanks and possibly a dash, a number or an emoji."""


def width_of(text: str) -> int:
    """Return how many columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(_width(character) for character in text)


@lru_cache(maxsize=8192)
def _width(character: str) -> int:
    if character >= _MARKS or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut_to_width(text: str, columns: int) -> str:
    """Shorten a line to a width. A shortened line ends in an ellipsis."""
    if width_of(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += _width(character)
        if used > columns - 1:
            break
        kept += character
    return kept.rstrip("\u200d") + "…" if columns > 0 else ""


def end_to_width(text: str, columns: int) -> str:
    """Shorten a line to a width by removing its beginning. It then begins with an ellipsis."""
    return cut_to_width(text[::-1], columns)[::-1]


def pad_to_width(text: str, columns: int) -> str:
    """Return the text, filled up with blanks to this width."""
    return text + " " * (columns - width_of(text))


def wrap(text: str, columns: int) -> str:
    """Break a text into lines. A word that is longer than a line is not broken."""
    return "\n".join(_wrap_line(line, columns) for line in text.split("\n"))


def _wrap_line(line: str, columns: int) -> str:
    shown, column = "", 0
    for gap, word in _words(line):
        wide = width_of(word)
        broken = column > 0 and column + len(gap) + wide > columns
        shown += ("\n" if broken else gap) + word
        end = (0 if broken else column + len(gap)) + wide
        column = (end - 1) % columns + 1 if end else 0
    return shown


def _words(line: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a line that can't be broken, each with the blanks before it."""
    gap = word = ""
    for character in line:
        blank = {" ": " ", "\t": "    "}.get(character, "")
        if word and (blank or _may_break(word[-1], character)):
            yield gap, word
            gap = word = ""
        gap += blank
        word += "" if blank else character
    if word:
        yield gap, word


def _may_break(last: str, character: str) -> bool:
    if last in _NEVER_AT_LINE_END or character in _NEVER_AT_LINE_START or _width(character) == 0:
        return False
    if last == "\u200d":
        return False  # an emoji made of several joined ones stays together
    return _width(last) == 2 or _width(character) == 2


def wrap_hanging(line: str, columns: int) -> str:
    """Break a line. The lines that follow are indented to the column where its text begins."""
    found = _BEGINNING.match(line)
    before = found[0] if found else ""
    return wrap_beside(before, line[len(before) :], columns)


def wrap_beside(before: str, text: str, columns: int) -> str:
    """Break a text into lines to the right of `before`."""
    begins = width_of(before)
    wrapped = wrap(text, max(columns - begins, 8))
    return before + wrapped.replace("\n", "\n" + " " * begins)


def split_at_width(text: str, columns: int) -> list[str]:
    """Split a line into pieces that fit, at any character and without changing it."""
    pieces: list[str] = []
    current, used = "", 0
    for character in text:
        wide = _width(character)
        if current and used + wide > columns:
            pieces.append(current)
            current, used = "", 0
        current += character
        used += wide
    return [*pieces, current]
