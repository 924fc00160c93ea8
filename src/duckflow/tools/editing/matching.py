"""Finding the text an edit means: exactly, else with white space ignored, from strict to loose."""

from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

_ENOUGH = 100  # places; how many more there are helps nobody


class Span(NamedTuple):
    """Where something is in a text."""

    start: int
    end: int


def find_exact(text: str, wanted: str) -> list[Span]:
    """Every place, overlapping ones too: two are two even then."""
    spans: list[Span] = []
    start = text.find(wanted)
    while start >= 0 and len(spans) < _ENOUGH:
        spans.append(Span(start, start + len(wanted)))
        start = text.find(wanted, start + 1)
    return spans


def find_apart(text: str, wanted: str) -> list[Span]:
    """Every place, one behind the other, without overlapping."""
    spans: list[Span] = []
    start = text.find(wanted)
    while start >= 0:
        spans.append(Span(start, start + len(wanted)))
        start = text.find(wanted, start + len(wanted))
    return spans


def collapse(line: str) -> str:
    """A line with each run of white space as one space, none at its ends."""
    return " ".join(line.split())


def squeeze(line: str) -> str:
    """A line without white space."""
    return "".join(line.split())


def content_lines(text: str) -> list[str]:
    """The lines of a text without the blank ones at both ends."""
    lines = text.split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    while lines and not lines[0].strip():
        lines.pop(0)
    return lines


def find_lines(text: str, wanted: str, key: Callable[[str], str]) -> list[Span]:
    """Places where whole lines are equal by `key`; a span ends before its last line feed."""
    lines = text.split("\n")
    starts = [0, *accumulate(len(line) + 1 for line in lines)]
    keys = [key(line) for line in lines]
    searched = [key(line) for line in content_lines(wanted)]
    if not searched:
        return []
    count = len(searched)
    return [
        Span(starts[first], starts[first + count] - 1)
        for first in range(len(lines) - count + 1)
        if keys[first] == searched[0] and keys[first : first + count] == searched
    ]


def find_fragment(text: str, wanted: str) -> list[Span]:
    """Places that are equal without any white space, line feeds included; no half words of ASCII letters."""
    searched = squeeze(wanted)
    if not searched:
        return []
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    squeezed = "".join(text[place] for place in places)
    found = find_exact(squeezed, searched)
    spans = [Span(places[start], places[end - 1] + 1) for start, end in found]
    return [span for span in spans if _whole_words(text, span)]


def line_of(text: str, place: int) -> int:
    """The number of the line, from 1."""
    return text.count("\n", 0, place) + 1


def _whole_words(text: str, span: Span) -> bool:
    return not (
        _joined(text[span.start - 1 : span.start], text[span.start])
        or _joined(text[span.end - 1], text[span.end : span.end + 1])
    )


def _joined(one: str, other: str) -> bool:
    """Whether two neighbours are letters of one ASCII word; either may be missing."""
    return bool(one and other) and all(
        part.isascii() and (part.isalnum() or part == "_") for part in one + other
    )
