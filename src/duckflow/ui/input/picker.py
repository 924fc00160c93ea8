"""A list to choose from: typing filters it, the arrow keys move, Enter chooses, Esc leaves."""

import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, pad_to_width, width_of

_ROWS = 8


class Choice(NamedTuple):
    """One entry of a list: the line to type for it, its text, and a faint remark."""

    line: str
    shown: str
    remark: str = ""
    searched: str = ""
    """More text in which typed words are found."""


class Pick(NamedTuple):
    """A question with the entries to choose from."""

    question: str
    choices: Sequence[Choice]


class Picker:
    """The state of an open list: what was typed, and which entry is marked."""

    def __init__(self, choices: Sequence[Choice]) -> None:
        self._choices = choices
        self._folded = [_folded(" ".join(one)) for one in choices]
        self._typed = ""
        self._place = 0

    def filter(self, typed: str) -> None:
        """Keep the entries that contain all typed words, and mark the first."""
        self._typed, self._place = typed, 0

    def move(self, by: int) -> None:
        """Mark an entry further down or up; after the last one comes the first."""
        self._place = (self._place + by) % max(len(self._matching()), 1)

    def chosen(self) -> str | None:
        """Return the line of the marked entry, None if no entry matches."""
        found = self._matching()
        return found[self._place].line if found else None

    def lines(self, columns: int) -> tuple[Line, ...]:
        """Return the lines to draw: the entries around the marked one, and how many there are."""
        found, room = self._matching(), columns - 1
        first = max(min(self._place - _ROWS // 2, len(found) - _ROWS), 0)
        lines: list[Line] = []
        for place, one in enumerate(found[first : first + _ROWS], start=first):
            remark = f"  {on_one_line(one.remark)}" if one.remark else ""
            shown = cut_to_width(on_one_line(one.shown), max(room - 2 - width_of(remark), room // 2))
            row = cut_to_width(f"{'❯' if place == self._place else ' '} {shown}", room)
            style = "picked" if place == self._place else "choice"
            left = pad_to_width("", max(room - width_of(row) - width_of(remark), 0))
            lines.append([(style, row), ("faint", cut_to_width(f"{left}{remark}", room - width_of(row)))])
        count = (
            text("picker.none") if not found else text("picker.keys", place=self._place + 1, count=len(found))
        )
        return (*lines, [("faint", cut_to_width(count, room))])

    def _matching(self) -> Sequence[Choice]:
        words = _folded(self._typed).split()
        folded = zip(self._choices, self._folded, strict=True)
        return [one for one, known in folded if all(word in known for word in words)]


def _folded(shown: str) -> str:
    return unicodedata.normalize("NFKC", shown).casefold()
