"""A reply as it is being written: finished blocks are drawn once, the rest is shown above the prompt."""

from collections.abc import Iterator

from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.markdown import render_code, render_text
from duckflow.ui.output.markdown_blocks import MarkdownBlock, MarkdownBlocks
from duckflow.ui.output.text_width import wrap
from duckflow.ui.output.writer import Writer

_FORMATTED = 200_000
"""Characters of a reply that are formatted; who writes more than that gets it plainly."""
_PIECE = 8_192
_PREVIEW = 2_000


class ReplyStream:
    """Takes pieces, writes blocks."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._blocks = MarkdownBlocks()
        self._taken = 0
        self._in_code = False

    def feed(self, piece: str) -> None:
        """Go on with the reply."""
        self._writer.write(self._lines(piece))

    def end(self) -> None:
        """The reply is whole."""
        self._writer.write(self._last())

    def preview(self, columns: int, rows: int) -> list[str]:
        """The last lines of the block that is being written."""
        rest = self._blocks.rest().strip("\n")[-_PREVIEW:]
        return wrap(harmless(rest), columns).split("\n")[-rows:] if rest else []

    def _lines(self, piece: str) -> Iterator[str]:
        for start in range(0, len(piece), _PIECE):
            part = piece[start : start + _PIECE]
            self._taken += len(part)
            for block in self._blocks.feed(part):
                yield from self._drawn(block)

    def _last(self) -> Iterator[str]:
        ended, self._blocks = (
            self._blocks,
            MarkdownBlocks(),
        )  # what is drawn now must not be shown as unfinished too
        for block in ended.end():
            yield from self._drawn(block)
        self._taken, self._in_code = 0, False

    def _drawn(self, block: MarkdownBlock) -> Iterator[str]:
        """A block with space before it, unless it goes on with the code before it."""
        if not self._in_code:
            yield "\n"
        self._in_code = block.language is not None and not block.ends
        coloured = self._writer.coloured
        if self._taken > _FORMATTED:
            yield harmless(block.text)
        elif block.language is not None:
            yield render_code(block.text, block.language, coloured=coloured)
        else:
            yield render_text(block.text, self._writer.columns, coloured=coloured)
