"""Sections of texts that need no grammar: headings of Markdown, tables of TOML."""

from collections.abc import Iterator
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})")
_HEADING = lazy_regex(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = lazy_regex(r" {0,3}(=+|-+)[ \t]*")
_NO_PARAGRAPH = lazy_regex(r"\s*$| {4}|\t| {0,3}(?:[>|]|[-*+][ \t]|\d+[.)][ \t])")
_TABLE = lazy_regex(r"[ \t]*\[{1,2}[^\[\]=]+\]{1,2}[ \t]*(?:#.*)?")
_KEY = lazy_regex(r"[ \t]*[\w.\"'-][^=#\[\]]*=")
_STRING = lazy_regex(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')
_QUOTES = ('"""', "'''")

LEVELS = 6
"""Number of section levels."""


class Section(NamedTuple):
    """First line of a section: its number, from 1, its depth, and its text."""

    line: int
    depth: int
    text: str


def markdown_headings(lines: list[str]) -> Iterator[Section]:
    """Yield all headings, in both forms, except those in code and in the front matter."""
    fence, paragraph = "", False
    top = _front_matter(lines)
    for number, line in enumerate(lines[top:], top + 1):
        mark = _FENCE.match(line)
        if fence:
            closed = mark and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closed else fence
        elif mark:
            fence, paragraph = mark[1], False
        elif heading := _HEADING.match(line):
            yield Section(number, len(heading[1]) - 1, line.strip())
            paragraph = False
        elif paragraph and (under := _UNDERLINE.fullmatch(line)):
            yield Section(number - 1, int(under[1][0] == "-"), lines[number - 2].strip())
            paragraph = False
        else:
            paragraph = not _NO_PARAGRAPH.match(line)


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of the front matter, the block of settings at the top."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((n for n, line in enumerate(lines[1:200], 2) if line.rstrip() in ("---", "...")), 0)


def toml_tables(lines: list[str]) -> Iterator[Section]:
    """Yield all tables, and the keys before the first one."""
    quote, in_table, nested = "", False, 0
    for number, line in enumerate(lines, 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if not nested and _TABLE.fullmatch(line):
            in_table = True
            yield Section(number, 0, line.strip())
            continue
        if not in_table and not nested and _KEY.match(line):
            yield Section(number, 0, line.strip())
        quote = next((mark for mark in _QUOTES if line.count(mark) % 2), "")
        bare = _STRING.sub("", line)
        nested = max(nested + bare.count("[") - bare.count("]"), 0)
