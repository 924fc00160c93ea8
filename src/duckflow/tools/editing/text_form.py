"""How a file writes its text down: line ends and byte order mark. Models see neither; files keep theirs."""

import re
from bisect import bisect_left
from typing import NamedTuple

MARK = "\ufeff"
"""The byte order mark."""


class TextForm(NamedTuple):
    """The form of a file."""

    mark: bool = False
    crlf: bool = False


def form_of(text: str) -> TextForm:
    """The form a text has; with mixed line ends, that of most lines."""
    return TextForm(text.startswith(MARK), 2 * text.count("\r\n") > text.count("\n"))


def plain(text: str) -> str:
    """The text without mark, every line ended by a line feed."""
    return text.removeprefix(MARK).replace("\r\n", "\n")


def shape(content: str, form: TextForm, *, keep_ends: bool = False) -> str:
    """New content for a file of this form; `keep_ends` where its line ends are right already."""
    if form.crlf and not keep_ends and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    return MARK + content if form.mark and not content.startswith(MARK) else content


def splice(text: str, span: tuple[int, int], new: str) -> str:
    """`text` with a span of its plain form (without the mark) replaced; untouched lines keep their ends."""
    dropped = [match.start() - index for index, match in enumerate(re.finditer("\r\n", text))]
    start, end = (place + bisect_left(dropped, place) for place in span)
    newline = "\r\n" if form_of(text).crlf else "\n"
    return text[:start] + new.replace("\n", newline) + text[end:]
