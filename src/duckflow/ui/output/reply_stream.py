"""A reply while it is written: finished blocks are printed, the unfinished one is shown above the prompt."""

from collections.abc import Iterator
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.markdown import render_code, render_text
from duckflow.ui.output.text_width import wrap
from duckflow.ui.output.writer import Writer

_MAX_FORMATTED_CHARS = 200_000
_PIECE = 8_192
_PREVIEW = 2_000
_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)")
_TABLE_OR_LIST = lazy_regex(r"\s|[-*+|>]|\d+[.)]")
_MAX_WAITING_CHARS = 4_000
_MAX_CODE_LINES = 40
_MAX_TEXT_LINES = 200


class MarkdownBlock(NamedTuple):
    """Part of a reply: Markdown, or code with its language. `ends` is False if the code continues."""

    text: str
    language: str | None = None
    ends: bool = True


class MarkdownBlocks:
    """Splits a stream of text into blocks as they are finished."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._open = ""
        self._fence = ""
        self._language = ""

    def feed(self, piece: str) -> Iterator[MarkdownBlock]:
        """Add a piece and yield the blocks that it finishes."""
        *whole, self._open = (self._open + piece).split("\n")
        for line in whole:
            yield from self._take(line)
        if len(self._open) > _MAX_WAITING_CHARS:
            line, self._open = self._open, ""
            yield from self._take(line)

    def end(self) -> Iterator[MarkdownBlock]:
        """Yield the last block, when the text has ended."""
        if self._open:
            line, self._open = self._open, ""
            yield from self._take(line)
        yield from self._flush()
        self._fence = ""

    def rest(self) -> str:
        """Return the text that is not part of a finished block."""
        return "\n".join([*self._lines, self._open])

    def _take(self, line: str) -> Iterator[MarkdownBlock]:
        fence = _FENCE.match(line)
        if self._fence:
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                yield from self._flush()
                self._fence = ""
                return
            self._lines.append(line)
            if len(self._lines) >= _MAX_CODE_LINES:
                yield from self._flush(ends=False)
        elif fence is not None and not ("`" in fence[1] and "`" in line[fence.end() :]):
            yield from self._flush()
            self._fence, self._language = fence[1], fence[2]
        elif line and self._lines and not self._lines[-1].strip() and not _TABLE_OR_LIST.match(line):
            yield from self._flush()
            self._lines.append(line)
        else:
            self._lines.append(line)
            if line.startswith("#") or len(self._lines) >= _MAX_TEXT_LINES:
                yield from self._flush()

    def _flush(self, *, ends: bool = True) -> Iterator[MarkdownBlock]:
        body = "\n".join(self._lines)
        if self._fence:
            yield MarkdownBlock(body if body.strip() or not ends else "", self._language, ends)
        elif body.strip():
            yield MarkdownBlock(body.strip("\n"))
        self._lines = []


class ReplyStream:
    """Receives a reply in pieces and writes its finished blocks."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._blocks = MarkdownBlocks()
        self._taken = 0
        self._in_code = False

    def feed(self, piece: str) -> None:
        """Add a piece of the reply."""
        self._writer.write(self._lines(piece))

    def end(self) -> None:
        """Write the last block, when the reply has ended."""
        self._writer.write(self._last())

    def preview(self, columns: int, rows: int) -> list[str]:
        """Return the last lines of the block that is not finished."""
        rest = self._blocks.rest().strip("\n")[-_PREVIEW:]
        return wrap(harmless(rest), columns).split("\n")[-rows:] if rest else []

    def _lines(self, piece: str) -> Iterator[str]:
        for start in range(0, len(piece), _PIECE):
            part = piece[start : start + _PIECE]
            self._taken += len(part)
            for block in self._blocks.feed(part):
                yield from self._drawn(block)

    def _last(self) -> Iterator[str]:
        ended, self._blocks = self._blocks, MarkdownBlocks()  # the preview must not show what is written now
        for block in ended.end():
            yield from self._drawn(block)
        self._taken, self._in_code = 0, False

    def _drawn(self, block: MarkdownBlock) -> Iterator[str]:
        if not self._in_code:
            yield "\n"
        self._in_code = block.language is not None and not block.ends
        coloured = self._writer.coloured
        if self._taken > _MAX_FORMATTED_CHARS:
            yield harmless(block.text)
        elif block.language is not None:
            yield render_code(block.text, block.language, coloured=coloured)
        else:
            yield render_text(block.text, self._writer.columns, coloured=coloured)
