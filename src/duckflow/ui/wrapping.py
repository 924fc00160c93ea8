"""Breaking running text into lines between words, as it comes; between any two characters of Japanese."""

import unicodedata

_CLOSING = frozenset("、。，．・：；？！」』）】〉》”’ーぁぃぅぇぉっゃゅょァィゥェォッャュョ々…")
"""What may not begin a line, and so stays with what is before it."""
_OPENING = frozenset("「『（【〈《“‘")
"""What may not end a line, and so goes with what follows."""


def width_of(text: str) -> int:
    """Columns a text takes on a terminal."""
    return sum(_width(character) for character in text)


def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


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
        return _width(last) == 2 or _width(character) == 2

    def _place(self, columns: int) -> str:
        """The word in hand, on this line or the next; one that no line can hold runs over."""
        word, gap, self._word = self._word, self._gap, ""
        if not word:
            return ""
        self._gap = ""
        broken = self.column > 0 and self.column + len(gap) + width_of(word) > columns
        before = "\n" if broken else gap
        end = (0 if broken else self.column + len(gap)) + width_of(word)
        self.column = (end - 1) % columns + 1
        return before + word
