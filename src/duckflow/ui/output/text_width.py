"""Breaking running text into lines between words, as it comes; between any two characters of Japanese."""

import unicodedata
from functools import lru_cache

from duckflow.domain.patterns import late

_CLOSING = frozenset("、。，．・：；？！」』）】〉》”’ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々…｡｣､･ｰﾞﾟ")
"""What may not begin a line, and so stays with what is before it."""
_OPENING = frozenset("「『（【〈《“‘｢")
"""What may not end a line, and so goes with what follows."""
_MARKS = "\U0010ff00"
"""From here on characters stand for a change of style: they take no room."""
_BEGINNING = late(r" *(?:(?:\d{1,2}\.|[^\w\s]{1,2}) )?")
"""What is before the text of a line: space, and a dash, a number or a picture."""


def width_of(text: str) -> int:
    """Columns a text takes on a terminal."""
    return len(text) if text.isascii() else sum(_width(character) for character in text)


@lru_cache(maxsize=8192)
def _width(character: str) -> int:
    if character >= _MARKS or unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def cut_to_width(text: str, columns: int) -> str:
    """As much of a line as fits, ending in an ellipsis if something was left out."""
    if width_of(text) <= columns:
        return text
    kept, used = "", 0
    for character in text:
        used += _width(character)
        if used > columns - 1:
            break
        kept += character
    return kept.rstrip("\u200d") + "…" if columns > 0 else ""


def wrap(text: str, columns: int) -> str:
    """A whole text with line breaks."""
    wrapping = Wrapping()
    return wrapping.feed(text, columns) + wrapping.end(columns)


def wrap_hanging(line: str, columns: int) -> str:
    """One line with line breaks, what follows as far in as its text begins."""
    found = _BEGINNING.match(line)
    before = found[0] if found else ""
    return wrap_beside(before, line[len(before) :], columns)


def wrap_beside(before: str, text: str, columns: int) -> str:
    """A text with line breaks, all of it to the right of what is before it."""
    begins = width_of(before)
    wrapped = wrap(text, max(columns - begins, 8))
    return before + wrapped.replace("\n", "\n" + " " * begins)


def split_at_width(text: str, columns: int) -> list[str]:
    """A line in pieces that fit, broken anywhere but inside a character; nothing is left out or added."""
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


class Wrapping:
    """Text goes in piece by piece and comes out with line breaks; the last word waits for its end."""

    def __init__(self) -> None:
        self.column = 0
        self._word = ""
        self._gap = ""

    def feed(self, piece: str, columns: int) -> str:
        """All of what was fed that can be written now."""
        return "".join(self._take(character, columns) for character in piece)

    def end(self, columns: int) -> str:
        """What was still waiting."""
        return self._place(columns)

    def _take(self, character: str, columns: int) -> str:
        if character == "\n":
            placed = self._place(columns)
            self.column, self._gap = 0, ""
            return f"{placed}\n"
        if character in " \t":
            placed = self._place(columns)
            self._gap += " " if character == " " else "    "
            return placed
        if not self._breaks_before(character):
            self._word += character
            return ""
        placed = self._place(columns)
        self._word = character
        return placed

    def _breaks_before(self, character: str) -> bool:
        last = self._word[-1:]
        if not last or last in _OPENING or character in _CLOSING or _width(character) == 0:
            return False
        if last == "\u200d":
            return False  # a family of emoji stays together
        return _width(last) == 2 or _width(character) == 2

    def _place(self, columns: int) -> str:
        """The word in hand, on this line or the next; one that no line can hold runs over."""
        word, gap, self._word = self._word, self._gap, ""
        if not word:
            return ""
        self._gap = ""
        wide = width_of(word)
        broken = self.column > 0 and self.column + len(gap) + wide > columns
        before = "\n" if broken else gap
        end = (0 if broken else self.column + len(gap)) + wide
        self.column = (end - 1) % columns + 1 if end else 0
        return before + word
