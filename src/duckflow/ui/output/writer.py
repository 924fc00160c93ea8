"""Where the conversation is written: above the prompt of a terminal, or plainly to standard output."""

import shutil
import sys
from collections.abc import Callable, Iterable

from duckflow.ui.output.colours import Colour, paint, wanted
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.text_width import wrap_hanging


def print_lines(texts: Iterable[str]) -> None:
    """Write lines to standard output, at once."""
    for text in texts:
        sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
    sys.stdout.flush()


class Writer:
    """Takes whole lines. `formatted` says that a person reads them on a terminal that can do more than print:
    there they are broken between words, and perhaps in colour; elsewhere they stay as they are."""

    def __init__(
        self,
        write: Callable[[Iterable[str]], None] = print_lines,
        size: Callable[[], tuple[int, int]] = shutil.get_terminal_size,
        *,
        formatted: bool = False,
    ) -> None:
        self.write = write
        """Writes lines that are to stay exactly as they are, each made when its turn comes."""
        self._size = size
        self.formatted = formatted
        self.coloured = formatted and wanted(sys.stdout)

    @property
    def columns(self) -> int:
        """How wide it is now; through a pipe a guess, for what must be cut."""
        return self._size()[0]

    @property
    def rows(self) -> int:
        """How high it is now."""
        return self._size()[1]

    def raw(self, *texts: str) -> None:
        """Lines that are to stay exactly as they are."""
        self.write(texts)

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """One paragraph."""
        self.raw("\n".join(self.drawn(shown, colour)))

    def drawn(self, shown: str, colour: Colour | None) -> list[str]:
        """The rows of a paragraph."""
        lines = harmless(shown).split("\n")
        if self.formatted:
            lines = [row for line in lines for row in wrap_hanging(line, self.columns).split("\n")]
        return [self.painted(line, colour) for line in lines]

    def painted(self, shown: str, colour: Colour | None) -> str:
        """The text in this colour, if there are colours here."""
        return paint(shown, colour) if self.coloured else shown
