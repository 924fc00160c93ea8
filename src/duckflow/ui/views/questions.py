"""Questions in the flow: an approval with all that a yes would cover, a consultation with its ways on.

Nothing counts as a yes but a yes: no answer, the end of input and keys typed before are a no. What is longer
than the screen is shown page by page, and a yes counts only once all of it was shown.
"""

import unicodedata
from collections.abc import Callable

from duckflow.domain.approval import Approval
from duckflow.domain.commands import AnswerApproval, ChooseWay
from duckflow.domain.consultation import Consultation
from duckflow.i18n.catalogue import text
from duckflow.ui.input.answers import read_answer, read_choice
from duckflow.ui.input.editor import Edit
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.writer import Writer
from duckflow.ui.views.approval import approval_view, question_lines
from duckflow.ui.views.events import consultation_text

_NUMBERS = {"1": "y", "2": "n", "3": "a", "4": "e"}
_EDIT = frozenset({"e", "edit", "編集"})
_ALL = frozenset({"all", "全部", "すべて"})
_AROUND = 6
"""Rows that stay free of a page: the question, the bar, and a line or two of what was before."""
_SHORTEST = 10


class Questions:
    """Asks the user and reads the answers."""

    def __init__(self, keyboard: Keyboard, writer: Writer, rows: Callable[[], int], edit: Edit) -> None:
        self._keyboard = keyboard
        self._writer = writer
        self._rows = rows
        self._edit = edit

    async def approve(self, approval: Approval, proposed: str | None = None) -> AnswerApproval | None:
        """The user's answer; None if there was none, which is a no.

        `proposed` is the whole text that would be written or run, if the user may change it.
        """
        lines = self._drawn(approval)
        while True:
            lines = self._page(lines)
            said = await self._keyboard.answer(self._question(approval, proposed, len(lines)))
            if said is None:
                return None
            word = _word(said)
            if lines and (not word or word in _ALL):
                lines = lines if not word else self._show_all(lines)
                continue
            if word in _EDIT and proposed is not None:
                edited = await self._edit(proposed, str(approval.action.args.get("path") or "command.sh"))
                if edited is not None:
                    return AnswerApproval(yes=True, edited=edited)
                continue
            answer = read_answer(word if word in _NUMBERS.values() else said)
            if not _offered(answer, approval):
                self._writer.line(text("approval.not_offered"), "yellow")
            elif answer.yes and lines:
                self._writer.line(text("approval.unseen", count=len(lines)), "yellow")
            else:
                return answer

    async def consult(self, consultation: Consultation) -> ChooseWay | None:
        """The way the user chooses; None where they had enough."""
        self._writer.line(f"\n{consultation_text(consultation)}")
        said = await self._keyboard.answer(text("consultation.question"))
        return read_choice(said, consultation) if said and said.strip() else None

    def _drawn(self, approval: Approval) -> list[str]:
        """The points of the question are written at once; what comes back is the difference, in lines."""
        writer = self._writer
        for shown, colour in question_lines(approval_view(approval)):
            writer.line(shown, colour)
        columns = writer.columns if writer.formatted else 0
        return difference_lines(approval.difference, columns, coloured=writer.coloured)

    def _page(self, lines: list[str]) -> list[str]:
        """Write as much as a screen holds; the rest."""
        page = max(self._rows() - _AROUND, _SHORTEST) if self._writer.formatted else len(lines)
        if lines:
            self._writer.raw(*lines[:page])
        return lines[page:]

    def _show_all(self, lines: list[str]) -> list[str]:
        self._writer.raw(*lines)
        return []

    def _question(self, approval: Approval, proposed: str | None, unseen: int) -> str:
        if unseen:
            return text("approval.rest", count=unseen)
        keys = [text("approval.keys.yes"), text("approval.keys.no")]
        keys += [text("approval.keys.always")] if approval.kind is not None else []
        keys += [text("approval.keys.edit")] if proposed is not None else []
        return text("approval.ask", keys=" · ".join(keys))


def _word(said: str) -> str:
    word = unicodedata.normalize("NFKC", said).strip().casefold()
    return _NUMBERS.get(word, word)


def _offered(answer: AnswerApproval, approval: Approval) -> bool:
    """Whether such an answer can be given here."""
    return not (answer.always and approval.kind is None) and (answer.edited is None or approval.editable)
