"""A keyboard with answers laid out in order, and a writer that keeps what is written on it."""

from collections.abc import Iterable

from duckflow.ui.input.keyboard import MessageQueue
from duckflow.ui.output.writer import Writer


class FakeWriter(Writer):
    """A terminal of a fixed width without colours."""

    def __init__(self, columns: int = 80, rows: int = 24) -> None:
        self.texts: list[str] = []
        super().__init__(self._keep, lambda: (columns, rows), formatted=True)
        self.coloured = False

    def _keep(self, texts: Iterable[str]) -> None:
        self.texts += texts

    @property
    def text(self) -> str:
        """All of it."""
        return "\n".join(self.texts)


class Keyboard:
    """Gives the answers in order; after them there is none."""

    def __init__(self, *answers: str | None) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.inbox = MessageQueue()
        self.line = ""

    async def answer(self, question: str, prefilled: str = "", *, again: bool = False) -> str | None:
        """The next answer."""
        self.asked.append(question)
        return self.answers.pop(0) if self.answers else None

    def swap_line(self, typed: str) -> str:
        """Keep what is on the line."""
        before, self.line = self.line, typed
        return before

    def refresh(self) -> None:
        """Nothing is drawn."""
