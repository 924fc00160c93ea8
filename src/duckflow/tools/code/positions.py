"""Positions in a text as servers count them: lines from 0, and columns in units of an encoding."""

import re
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from duckflow.domain.patterns import lazy_regex

PositionEncoding = Literal["utf-8", "utf-16", "utf-32"]
ENCODINGS: tuple[PositionEncoding, ...] = ("utf-32", "utf-8", "utf-16")
"""Encodings that Duckflow offers, best first. A server that does not choose counts in UTF-16."""

_ENDS = lazy_regex(r"\r\n|\n|\r")
_UNIT: dict[PositionEncoding, tuple[str, int]] = {"utf-8": ("utf-8", 1), "utf-16": ("utf-16-le", 2)}


class TextPart(NamedTuple):
    """Part of a text, as indexes of characters."""

    start: int
    end: int


class TextPositions:
    """Converts between indexes in a text and a server's positions."""

    def __init__(self, text: str, encoding: PositionEncoding) -> None:
        self.text = text
        self._encoding: PositionEncoding = encoding
        ends = [(found.start(), found.end()) for found in _ENDS.finditer(text)]
        self._starts = [0, *(after for _, after in ends)]
        self._stops = [*(before for before, _ in ends), len(text)]

    def index(self, position: Mapping[str, Any]) -> int:
        """Return the index of a position. One behind the end of a line or of the text is cut to it."""
        line, column = int(position["line"]), int(position["character"])
        if line < 0 or column < 0:
            raise ValueError(f"no such position: {line}:{column}")
        if line >= len(self._starts):
            return len(self.text)
        start = self._starts[line]
        said = self.text[start : self._stops[line]]
        if self._encoding == "utf-32" or said.isascii():
            return start + min(column, len(said))
        codec, width = _UNIT[self._encoding]
        data = said.encode(codec, "surrogatepass")[: column * width]
        return start + len(data.decode(codec, "ignore"))

    def span(self, found: Mapping[str, Any]) -> TextPart:
        """Return the part of the text that a range covers."""
        return TextPart(self.index(found["start"]), self.index(found["end"]))

    def position(self, index: int) -> dict[str, int]:
        """Return the position of an index."""
        line = self.line(index)
        said = self.text[self._starts[line] : index]
        if self._encoding == "utf-32" or said.isascii():
            return {"line": line, "character": len(said)}
        codec, width = _UNIT[self._encoding]
        return {"line": line, "character": len(said.encode(codec, "surrogatepass")) // width}

    def line(self, index: int) -> int:
        """Return the line of an index, from 0."""
        return bisect_right(self._starts, index) - 1

    def line_text(self, line: int) -> str:
        """Return the text of a line, or an empty text after the last line."""
        return self.text[self._starts[line] : self._stops[line]] if line < len(self._starts) else ""

    def line_span(self, line: int) -> TextPart:
        """Return the part of the text that is this line."""
        return TextPart(self._starts[line], self._stops[line])


def words(text: str, name: str) -> list[int]:
    """Return the indexes at which a name occurs in a text as a whole word."""
    return [found.start() for found in re.finditer(rf"(?<!\w){re.escape(name)}(?!\w)", text)]
