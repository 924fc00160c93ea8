"""Line ends and byte order mark of a file. Models see neither, and edited files keep theirs."""

import re
from bisect import bisect_left
from collections.abc import Iterable

MARK = "\ufeff"
"""Byte order mark."""


def has_crlf(text: str) -> bool:
    """Return True if most lines end in CRLF."""
    return 2 * text.count("\r\n") > text.count("\n")


def plain(text: str) -> str:
    """Return the text without byte order mark and with line feeds as line ends."""
    return text.removeprefix(MARK).replace("\r\n", "\n")


def shape(content: str, before: str, *, keep_ends: bool = False) -> str:
    """Give new content the line ends and the mark of `before`. With `keep_ends`, leave its line ends."""
    if has_crlf(before) and not keep_ends and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    return MARK + content if before.startswith(MARK) and not content.startswith(MARK) else content


def splice(text: str, changes: Iterable[tuple[tuple[int, int], str]]) -> str:
    """Replace spans of `text`, in which CRLF counts as one character. Untouched lines keep their ends.

    The spans come in order and do not overlap.
    """
    dropped = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    newline = "\r\n" if has_crlf(text) else "\n"
    parts: list[str] = []
    upto = 0
    for span, new in changes:
        start, end = (place + bisect_left(dropped, place) for place in span)
        parts += [text[upto:start], new.replace("\n", newline)]
        upto = end
    return "".join([*parts, text[upto:]])
