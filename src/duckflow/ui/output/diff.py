"""Diffs as the user sees them: coloured, side by side if there is room, never shortened."""

from collections.abc import Iterable, Iterator
from itertools import zip_longest
from typing import Literal, NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.ui.output.escaping import visible
from duckflow.ui.output.text_width import split_at_width, width_of
from duckflow.ui.output.writer import Colour, Writer

SIDE_BY_SIDE_COLUMNS = 120
_HUNK = lazy_regex(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_COLOURS: dict[str, Colour] = {"+++": "bold", "---": "bold", "@@": "cyan", "+": "green", "-": "red"}
"""Colour of a line by its beginning. The first match counts."""
_NUMBER = 5
_BETWEEN = " │ "


def difference_lines(difference: str, writer: Writer) -> list[str]:
    """Return the lines of a diff. On a terminal, long lines are split to fit its width."""
    lines = visible(difference).expandtabs(4).rstrip("\n").split("\n")
    if (
        writer.formatted
        and writer.columns >= SIDE_BY_SIDE_COLUMNS
        and any(_HUNK.match(line) for line in lines)
    ):
        return list(_side_by_side(lines, writer))
    return [
        writer.painted(piece, _colour(line))
        for line in lines
        for piece in (split_at_width(line, writer.columns) if writer.formatted else [line])
    ]


class DifferenceRow(NamedTuple):
    """A row of a diff: a title, the head of a hunk, an unchanged line (on both sides), or a changed line."""

    kind: Literal["title", "hunk", "both", "changed"]
    title: str = ""
    left: int = 0
    old: str | None = None
    right: int = 0
    new: str | None = None


def difference_rows(lines: Iterable[str]) -> Iterator[DifferenceRow]:
    """Yield rows with line numbers: removed lines on the left, added lines on the right, others on both."""
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


def _colour(line: str) -> Colour | None:
    return next((colour for beginning, colour in _COLOURS.items() if line.startswith(beginning)), None)


def _side_by_side(lines: list[str], writer: Writer) -> Iterator[str]:
    columns = writer.columns
    room = (columns - 1 - len(_BETWEEN)) // 2 - _NUMBER
    for row in difference_rows(lines):
        if row.kind in ("title", "hunk"):
            colour = _colour(row.title)
            yield from (writer.painted(one, colour) for one in split_at_width(row.title, columns))
            continue
        changed = row.kind == "changed"
        left = _side(row.old, row.left, "-" if changed else " ", room)
        right = _side(row.new, row.right, "+" if changed else " ", room)
        for old, new in zip_longest(left, right, fillvalue=""):
            padding = " " * max(room + _NUMBER - width_of(old), 0)
            before = writer.painted(old, "red" if changed else None)
            after = writer.painted(new, "green" if changed else None)
            yield f"{before}{padding}{_BETWEEN}{after}".rstrip()


def _side(text: str | None, number: int, sign: str, room: int) -> list[str]:
    pieces = [] if text is None else split_at_width(text, room - 2)
    begins = f"{number:>{_NUMBER - 1}} {sign} "
    return [f"{' ' * len(begins) if place else begins}{piece}" for place, piece in enumerate(pieces)]
