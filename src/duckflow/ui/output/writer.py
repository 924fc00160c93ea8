"""Where the conversation is written: above the prompt of a terminal, or plainly to standard output."""

import shutil
import sys
from collections.abc import Callable, Iterable
from typing import Literal, Protocol

from duckflow.ui.output.colours import Colour, paint, wanted
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.output.text_width import wrap_hanging


class Writer(Protocol):
    """Takes whole lines: wrapped and perhaps coloured on a terminal, as they are through a pipe."""

    coloured: bool
    formatted: bool
    """Whether a person reads it on a terminal that can do more than print lines."""

    @property
    def columns(self) -> int:
        """How wide it is."""
        ...

    @property
    def rows(self) -> int:
        """How high it is."""
        ...

    def raw(self, *texts: str) -> None:
        """Lines that are to stay exactly as they are."""
        ...

    def write(self, texts: Iterable[str]) -> None:
        """The same, each made when its turn comes."""
        ...

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """One paragraph."""
        ...


class TerminalWriter:
    """Writes above the prompt."""

    formatted = True

    def __init__(self, write: Callable[[Iterable[str]], None], size: Callable[[], tuple[int, int]]) -> None:
        self._write = write
        self._size = size
        self.coloured = wanted(sys.stdout)

    @property
    def columns(self) -> int:
        """How wide the terminal is now."""
        return self._size()[0]

    @property
    def rows(self) -> int:
        """How high the terminal is now."""
        return self._size()[1]

    def raw(self, *texts: str) -> None:
        """Lines that are to stay exactly as they are."""
        self._write(texts)

    def write(self, texts: Iterable[str]) -> None:
        """The same, each made when its turn comes."""
        self._write(texts)

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """One paragraph, broken between words."""
        wrapped = "\n".join(wrap_hanging(line, self.columns) for line in harmless(shown).split("\n"))
        self._write((paint(wrapped, colour) if colour and self.coloured else wrapped,))


class PlainWriter:
    """Writes lines to standard output, for a pipe or a terminal that can only print."""

    coloured = False
    formatted = False

    @property
    def columns(self) -> int:
        """A guess, for what must be cut."""
        return shutil.get_terminal_size().columns

    @property
    def rows(self) -> int:
        """A guess, as above."""
        return shutil.get_terminal_size().lines

    def raw(self, *texts: str) -> None:
        """Lines that are to stay exactly as they are."""
        self.write(texts)

    def write(self, texts: Iterable[str]) -> None:
        """Lines, at once."""
        for text in texts:
            sys.stdout.write(text if text.endswith("\n") else f"{text}\n")
        sys.stdout.flush()

    def line(self, shown: str, colour: Colour | None = None) -> None:
        """One paragraph, as it is."""
        del colour
        self.write((harmless(shown),))


Way = Literal["off", "bell", "desktop"]


def notifier(way: Way, signal: Callable[[str], None]) -> Callable[[str], None]:
    """What calls the user; with `off` nothing does."""

    def notify(said: str) -> None:
        if way == "bell":
            signal("\a")
        elif way == "desktop":
            signal(f"\x1b]9;{visible(said)}\x07")

    return notify
