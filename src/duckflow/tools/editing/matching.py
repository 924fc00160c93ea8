"""Find the text that an edit means: exactly, else ignoring white space, else the nearest text."""

import re
from collections.abc import Callable
from itertools import accumulate
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_INSIDE_WORD = lazy_regex(r"(?<=\w)(?=\w)", re.ASCII)
_ENOUGH = 100  # overlapping matches; more would not help the model


class Span(NamedTuple):
    """Range of a match in a text."""

    start: int
    end: int


def find_all(text: str, wanted: str, *, apart: bool = False) -> list[Span]:
    """Return the matches in order. Unless `apart`, they may overlap, and at most _ENOUGH are returned."""
    spans: list[Span] = []
    start = text.find(wanted)
    while start >= 0 and (apart or len(spans) < _ENOUGH):
        spans.append(Span(start, start + len(wanted)))
        start = text.find(wanted, start + (len(wanted) if apart else 1))
    return spans


def collapse(line: str) -> str:
    """Return a line with each run of white space as one space, and none at its ends."""
    return " ".join(line.split())


def squeeze(line: str) -> str:
    """Return a line without white space."""
    return "".join(line.split())


def content_lines(text: str) -> list[str]:
    """Return the lines of a text without the blank ones at both ends."""
    lines = text.split("\n")
    filled = [at for at, line in enumerate(lines) if line.strip()]
    return lines[filled[0] : filled[-1] + 1] if filled else []


def find_lines(text: str, wanted: str, key: Callable[[str], str]) -> list[Span]:
    """Return places whose whole lines equal those of `wanted` by `key`. Spans end before a line feed."""
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
    """Return places that equal `wanted` apart from white space, but never only part of an ASCII word."""
    searched = squeeze(wanted)
    if not searched:
        return []
    places = [place for place, letter in enumerate(text) if not letter.isspace()]
    squeezed = "".join(text[place] for place in places)
    found = find_all(squeezed, searched)
    spans = [Span(places[start], places[end - 1] + 1) for start, end in found]
    return [span for span in spans if not any(_INSIDE_WORD.match(text, place) for place in span)]


def line_of(text: str, place: int) -> int:
    """Return the line number, from 1, of a position in the text."""
    return text.count("\n", 0, place) + 1


_CANDIDATES = 12
_LIKE_ENOUGH = 0.35
_SHOWN_LINES = 20
_SHOWN_COLUMNS = 200


def show_lines(lines: list[str], first: int) -> str:
    """Return lines with their numbers, starting at `first`."""
    shown = [f"{first + index}| {line[:_SHOWN_COLUMNS]}" for index, line in enumerate(lines[:_SHOWN_LINES])]
    if len(lines) > _SHOWN_LINES:
        shown.append(f"… {len(lines) - _SHOWN_LINES} more lines")
    return "\n".join(shown)


def nearest_text(text: str, wanted: str) -> str | None:
    """Return the most similar lines with their numbers, None if nothing is similar."""
    lines = text.split("\n")
    searched = [_pairs(line) for line in content_lines(wanted)]
    if not searched:
        return None
    # Search everywhere for the line with the most letter pairs, and compare the others only around its
    # matches.
    anchor = max(range(len(searched)), key=lambda index: len(searched[index]))
    pairs = [_pairs(line) for line in lines]
    ranked = sorted(range(len(lines)), key=lambda index: -_likeness(searched[anchor], pairs[index]))
    starts = {max(0, index - anchor) for index in ranked[:_CANDIDATES]}

    def score(start: int) -> float:
        there = pairs[start : start + len(searched)]
        return sum(map(_likeness, searched, there)) / len(searched)

    best = max(sorted(starts), key=score)
    if score(best) < _LIKE_ENOUGH:
        return None
    return show_lines(lines[best : best + len(searched)], best + 1)


def _pairs(line: str) -> frozenset[str]:
    """Return pairs of neighbouring letters, which work for any language and script."""
    letters = squeeze(line)
    return frozenset(letters[index : index + 2] for index in range(max(len(letters) - 1, 1))) - {""}


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    """Return 0 for nothing in common, 1 for the same pairs. Two blank lines are the same."""
    if not one or not other:
        return float(one == other)
    return 2 * len(one & other) / (len(one) + len(other))
