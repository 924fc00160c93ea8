"""Running Markdown cut into blocks that are finished, so that each is drawn once and never again."""

from collections.abc import Iterator
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")
_TABLE_OR_LIST = lazy_regex(r"\s|[-*+|>]|\d+[.)]")
_LONG_LINE = 4_000
"""A line that grows beyond this is not waited for."""
_CODE_LINES = 40
"""Lines of code that are drawn at a time while more of the same block comes."""
_TEXT_LINES = 200


class MarkdownBlock(NamedTuple):
    """A part of a reply: Markdown, or code with its language. `ends` is False where more code follows."""

    text: str
    language: str | None = None
    ends: bool = True


class MarkdownBlocks:
    """Text goes in piece by piece; blocks come out as they are finished."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        self._fence = ""
        self._language = ""

    def feed(self, piece: str) -> Iterator[MarkdownBlock]:
        """The blocks that are finished now."""
        *whole, self._open = (self._open + piece).split("\n")
        for line in whole:
            yield from self._take(line)
        if len(self._open) > _LONG_LINE:
            line, self._open = self._open, ""
            yield from self._take(line)

    def end(self) -> Iterator[MarkdownBlock]:
        """What is left, finished or not."""
        if self._open:
            line, self._open = self._open, ""
            yield from self._take(line)
        yield from self._flush()
        self._fence = ""

    def rest(self) -> str:
        """The text of the block that is being written."""
        return "\n".join([*self._lines, self._open])

    def _take(self, line: str) -> Iterator[MarkdownBlock]:
        if self._fence:
            yield from self._code(line)
            return
        fence = _FENCE.match(line)
        if fence is not None and not ("`" in fence[1] and "`" in line[fence.end() :]):
            yield from self._flush()
            self._fence, self._language = fence[1], fence[2]
        elif line and self._lines and not self._lines[-1].strip() and not _TABLE_OR_LIST.match(line):
            yield from self._flush()
            self._lines.append(line)
        else:
            self._lines.append(line)
            if line.startswith("#") or len(self._lines) >= _TEXT_LINES:
                yield from self._flush()

    def _code(self, line: str) -> Iterator[MarkdownBlock]:
        if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
            yield from self._flush()
            self._fence = ""
            return
        self._lines.append(line)
        if len(self._lines) >= _CODE_LINES:
            yield from self._flush(ends=False)

    def _flush(self, *, ends: bool = True) -> Iterator[MarkdownBlock]:
        body = "\n".join(self._lines)
        language = self._language if self._fence else None
        if body.strip() or (language is not None and not ends):
            yield MarkdownBlock(body if self._fence else body.strip("\n"), language, ends)
        elif language is not None:
            yield MarkdownBlock("", language, ends)
        self._lines = []
