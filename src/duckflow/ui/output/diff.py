"""A difference as a person reads it: coloured, side by side if there is room. Nothing is cut."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Literal, NamedTuple

from duckflow.domain.patterns import late
from duckflow.ui.output.colours import Colour, difference_colour, paint
from duckflow.ui.output.escaping import visible
from duckflow.ui.output.text_width import split_at_width, width_of

WIDE = 120
"""From so many columns on, both sides are shown next to each other."""
_HUNK = late(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NUMBER = 5
_BETWEEN = " │ "


def difference_lines(difference: str, columns: int, *, coloured: bool) -> list[str]:
    """All lines of a difference, drawn; no longer than `columns`, unless that is 0."""
    lines = visible(difference).expandtabs(4).rstrip("\n").split("\n")
    if columns >= WIDE and any(_HUNK.match(line) for line in lines):
        return list(_side_by_side(lines, columns, coloured=coloured))
    return [
        _paint(piece, difference_colour(line), coloured=coloured)
        for line in lines
        for piece in (split_at_width(line, columns) if columns else [line])
    ]


class DifferenceRow(NamedTuple):
    """One row of a difference: a line that is removed, added or replaced, one on both sides, or a title."""

    kind: Literal["title", "hunk", "both", "changed"]
    title: str = ""
    left: int = 0
    old: str | None = None
    right: int = 0
    new: str | None = None


def difference_rows(lines: Iterable[str]) -> Iterator[DifferenceRow]:
    """Removed on the left, added on the right, the rest on both sides, each with its line number."""
    left, right = 0, 0
    removed: list[str] = []
    added: list[str] = []
    for line in [*lines, ""]:
        hunk = _HUNK.match(line)
        in_hunk = left > 0 or right > 0
        if in_hunk and line.startswith("-") and not line.startswith("---"):
            removed.append(line[1:])
            continue
        if in_hunk and line.startswith("+") and not line.startswith("+++"):
            added.append(line[1:])
            continue
        for old, new in zip_longest(removed, added):
            yield DifferenceRow("changed", "", left, old, right, new)
            left += old is not None
            right += new is not None
        removed, added = [], []
        if hunk is not None:
            left, right = int(hunk[1]), int(hunk[2])
            yield DifferenceRow("hunk", line)
        elif in_hunk and line.startswith(" "):
            yield DifferenceRow("both", "", left, line[1:], right, line[1:])
            left, right = left + 1, right + 1
        elif line:
            yield DifferenceRow("title", line)


def _side_by_side(lines: list[str], columns: int, *, coloured: bool) -> Iterator[str]:
    room = (columns - 1 - len(_BETWEEN)) // 2 - _NUMBER
    for row in difference_rows(lines):
        if row.kind in ("title", "hunk"):
            colour = difference_colour(row.title)
            yield from (_paint(one, colour, coloured=coloured) for one in split_at_width(row.title, columns))
            continue
        signs = ("-", "+") if row.kind == "changed" else (" ", " ")
        sides = _side(row.old, row.left, signs[0], room), _side(row.new, row.right, signs[1], room)
        painted = coloured and row.kind == "changed"
        yield from _rows(*sides, room, ("red", "green") if painted else (None, None))


def _side(text: str | None, number: int, sign: str, room: int) -> list[str]:
    """One line of one side, with its number, in as many rows as it needs."""
    if text is None:
        return []
    first, *more = split_at_width(text, room - 2)
    gap = " " * _NUMBER
    return [f"{number:>{_NUMBER - 1}} {sign} {first}", *(f"{gap}  {piece}" for piece in more)]


def _rows(
    left: list[str], right: list[str], room: int, colours: tuple[Colour | None, Colour | None]
) -> Iterator[str]:
    wide = room + _NUMBER
    for old, new in zip_longest(left, right, fillvalue=""):
        padding = " " * max(wide - width_of(old), 0)
        yield f"{_coloured(old, colours[0])}{padding}{_BETWEEN}{_coloured(new, colours[1])}".rstrip()


def _coloured(shown: str, colour: Colour | None) -> str:
    return paint(shown, colour) if colour and shown else shown


def _paint(line: str, colour: Colour | None, *, coloured: bool) -> str:
    return paint(line, colour) if coloured and colour and line else line
