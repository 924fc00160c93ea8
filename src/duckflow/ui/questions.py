"""Asks questions in the conversation: approvals, with everything that a yes allows, and consultations.

Only a clear yes counts as a yes. No answer, the end of input, or keys typed earlier count as a no; an unclear
answer is asked again. A yes to a long question counts only after its last page was shown.
"""

import unicodedata
from collections.abc import Iterable

from duckflow.domain.errors import ProviderError
from duckflow.domain.habits import habit_of
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.i18n.answers import is_remark, read_answer, read_choice
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext, dispatch_in_turn, follow_habit
from duckflow.ui.commands.table import read_command
from duckflow.ui.input.editor import TextEditor
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.writer import Writer
from duckflow.ui.views.approval import ApprovalView, ColouredLine, approval_view, brief_lines, point_lines
from duckflow.ui.views.events import consultation_text

_EDIT = frozenset({"e", "edit", "編集", "4"})
_ALL = frozenset({"all", "全部", "すべて"})
_MORE = frozenset({"?", "詳細", "詳しく"})
_AROUND = 6
"""Rows of the terminal that a page leaves free for the question, the bar, and some context."""
_SHORTEST = 10


class Questions:
    """Asks the user and reads the answers. A page is as high as the terminal."""

    def __init__(self, context: CommandContext, keyboard: Keyboard, editor: TextEditor) -> None:
        self._context = context
        self._writer = context.writer
        self._keyboard = keyboard
        self._editor = editor
        self._seen = ""
        """Digest of the approval about which the user made a remark, after all of it was shown."""

    async def approve(self, approval: Approval, proposed: str | None = None) -> AnswerApproval | str | None:
        """Return the user's answer, or their remark about it. None counts as a no.

        `proposed` is the text that the user may edit.
        """
        view = approval_view(approval)
        unseen = self._rows(brief_lines(view))
        if approval.difference.strip() and approval.digest != self._seen:
            unseen += ["", *difference_lines(approval.difference, self._writer)]
        self._writer.raw("")
        while True:
            unseen = self._page(unseen)
            said = await self._ask(_approval_keys(view, proposed, len(unseen)))
            if said is None:
                return None
            word = unicodedata.normalize("NFKC", said).strip().casefold()
            if unseen and (not word or word in _ALL):
                if word:
                    self._writer.raw(*unseen)
                    unseen = []
            elif word in _MORE:
                unseen += self._rows(point_lines(view))
            elif word in _EDIT and proposed is not None:
                edited = await self._editor.edit(
                    proposed, str(approval.action.args.get("path") or "command.sh")
                )
                if edited is not None:
                    return AnswerApproval(yes=True, edited=edited)
            elif (answer := read_answer(said)) is None and is_remark(said):
                self._seen = "" if unseen else approval.digest
                return said
            elif answer is None:
                self._writer.line(text("approval.unclear"), "yellow")
            elif (answer.always and not view.always) or (answer.edited is not None and not approval.editable):
                self._writer.line(text("approval.not_offered"), "yellow")
            elif answer.yes and unseen:
                self._writer.line(text("approval.unseen", count=len(unseen)), "yellow")
            else:
                return answer

    async def consult(self, consultation: Consultation) -> ChooseWay | None:
        """Return the user's choice, None if there was no answer."""
        self._writer.line(f"\n{consultation_text(consultation)}")
        instead = consultation.kind == "instead"
        question = text("consultation.question_instead") if instead else text("consultation.question")
        while True:
            said = await self._ask(question)
            if said is None:
                return None
            way = read_choice(said, consultation)
            if way is not None:
                return way
            self._writer.line(text("consultation.unclear", count=len(consultation.choices)), "yellow")

    async def _ask(self, question: str) -> str | None:
        again = False
        while True:
            said = await self._keyboard.answer(question, again=again)
            again = True  # what is typed right after a command is the answer
            line = said.strip() if said else ""
            if unicodedata.normalize("NFKC", line) not in _MORE and follow_habit(self._context, line):
                continue
            typed = read_command(line)
            if typed is None:
                return said
            self._context.screen.said(line)
            await dispatch_in_turn(self._context, typed)

    def _rows(self, lines: Iterable[ColouredLine]) -> list[str]:
        return [row for line, colour in lines for row in self._writer.drawn(line, colour)]

    def _page(self, rows: list[str]) -> list[str]:
        """Write one page of these rows, and return the rows that are left."""
        height = max(self._writer.rows - _AROUND, _SHORTEST) if self._writer.formatted else len(rows)
        if rows:
            self._writer.raw(*rows[:height])
        return rows[height:]


def _approval_keys(view: ApprovalView, proposed: str | None, unseen: int) -> str:
    if unseen:
        return text("approval.rest", count=unseen)
    keys = [text("approval.keys.yes"), text("approval.keys.no")]
    keys += [text("approval.keys.always")] if view.always else []
    keys += [text("approval.keys.edit")] if proposed is not None else []
    return text("approval.ask", keys=" · ".join([*keys, text("approval.keys.more")]))


class RelayPrompt:
    """The relay provider in the conversation: the user copies the prompt elsewhere and pastes the answer."""

    def __init__(self, keyboard: Keyboard, writer: Writer) -> None:
        self._keyboard = keyboard
        self._writer = writer

    async def show(self, prompt: str) -> None:
        """Show the prompt so that it can be copied."""
        self._writer.line(text("relay.copy"), "dim")
        self._writer.raw(harmless(prompt))

    async def read(self) -> str:
        """Return the pasted answer, up to Enter. A slash command is no answer: it runs now or afterwards."""
        later: list[str] = []
        try:
            while (said := await self._keyboard.answer(text("relay.paste"))) and (line := said.strip()):
                if read_command(line) is None and habit_of(line) is None:
                    return said
                if not self._keyboard.listener.handle_line(line):
                    later.append(line)
        finally:
            for line in later:
                self._keyboard.inbox.put(line)
        raise ProviderError("relay.no_answer")
