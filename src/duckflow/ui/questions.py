"""Asks questions in the conversation: approvals, with everything that a yes allows, and consultations.

Only a clear yes counts as a yes. No answer, the end of input, or keys typed earlier count as a no; an unclear
answer is asked again. A yes to a long question counts only after its last page was shown. Its further pages
begin with the question, and the last one ends with the question and its files.
"""

import unicodedata
from collections.abc import Iterable

from duckflow.domain.commands import RunShellCommand
from duckflow.domain.errors import ProviderError
from duckflow.domain.habits import habit_of
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.i18n.answers import is_end, is_pause, is_remark, read_answer, read_choice
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import (
    CommandContext,
    carry_out,
    dispatch_in_turn,
    errors_shown,
    follow_habit,
)
from duckflow.ui.commands.table import read_command
from duckflow.ui.input.editor import TextEditor
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.output.writer import Writer
from duckflow.ui.views.approval import (
    ApprovalView,
    ColouredLine,
    approval_view,
    brief_lines,
    head_lines,
    point_lines,
)
from duckflow.ui.views.events import consultation_text

_EDIT = frozenset({"e", "edit", "編集", "4"})
_ALL = lazy_regex(
    "all|show all|(?:全部|全て|すべて|ぜんぶ)を?(?:見せて|表示|表示して|見たい|見る)?(?:ください|下さい)?"
)
_NEXT = lazy_regex(
    "next|more|(?:次|つぎ|続き|つづき)(?:へ|を|の?ページ)?(?:見せて|表示|表示して|見る)?(?:ください|下さい)?"
)
_MORE = frozenset({"?", "詳細", "詳しく"})
_AROUND = 6
"""Rows of the terminal that a page leaves free for the question, the bar, and some context."""
_BELOW = 3
"""Rows below a page that must stay free. A question that leaves them is not split into pages."""
_PLAN = "plan_tool.approve"
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
        self._intent = ""
        """Intent in the last question, which the next one need not repeat."""

    async def approve(self, approval: Approval, proposed: str | None = None) -> AnswerApproval | str | None:
        """Return the user's answer, or their remark about it. None counts as a no.

        `proposed` is the text that the user may edit.
        """
        view = approval_view(approval)
        unseen = self._rows(brief_lines(view, intent=not self._was_told(approval.intent)))
        self._intent = approval.intent
        if approval.difference.strip() and approval.digest != self._seen:
            unseen += ["", *self._difference(approval)]
        head = self._rows(head_lines(view))
        if not self._fits(unseen):
            unseen += ["", *(head if self._fits(head) else head[:1])]
        self._writer.raw("")
        above: list[str] = []
        while True:
            unseen, above = self._page(unseen, above), head[:1]
            said = await self._ask(_approval_keys(view, proposed, len(unseen)))
            if said is None:
                return None
            word = unicodedata.normalize("NFKC", said).strip().casefold()
            if unseen and (not word or _NEXT.fullmatch(word)):
                continue
            if unseen and _ALL.fullmatch(word):
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
            elif is_pause(said) and not self._context.guest:
                return None
            elif is_end(said):
                return said
            elif (answer := read_answer(said)) is None and is_remark(said):
                self._seen = "" if unseen else approval.digest
                return said
            elif answer is None:
                self._writer.line(text("approval.unclear"), "yellow")
            elif answer.always and not view.always:
                self._writer.line(text("approval.no_always"), "yellow")
            elif answer.edited is not None and not approval.editable:
                self._writer.line(text("approval.not_offered"), "yellow")
            elif answer.yes and unseen:
                self._writer.line(text("approval.unseen", count=len(unseen)), "yellow")
                self._writer.raw(*unseen)
                unseen = []
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
            again = True  # a line typed right after a command counts as the answer
            line = said.strip() if said else ""
            if unicodedata.normalize("NFKC", line) not in _MORE and follow_habit(self._context, line):
                continue
            if line.startswith("!") and (command := line[1:].strip()):
                self._context.screen.said(line)
                self._context.screen.release_notices()
                with errors_shown(self._writer):
                    await carry_out(self._context, RunShellCommand(command=command))
                self._context.screen.hold_notices()
                continue
            typed = read_command(line)
            if typed is None:
                return said
            self._context.screen.said(line)
            await dispatch_in_turn(self._context, typed)

    def _rows(self, lines: Iterable[ColouredLine]) -> list[str]:
        return [row for line, colour in lines for row in self._writer.drawn(line, colour)]

    def _was_told(self, intent: str) -> bool:
        """Return whether the user has read this purpose: in the last question, or in the reply above."""
        reply = " ".join(self._context.client.state.reply.split())
        return intent == self._intent or reply.startswith(intent.removesuffix("…"))

    def _difference(self, approval: Approval) -> list[str]:
        """Return the rows of the effect. A plan is prose, so its lines are broken between words."""
        if approval.action.operation == _PLAN:
            return self._writer.drawn(visible(approval.difference), None)
        shown = approval.difference
        if self._context.screen.last_command == approval.action.args.get("command"):
            shown = shown.removeprefix(f"$ {self._context.screen.last_command}\n")
        return difference_lines(shown, self._writer) if shown.strip() else []

    def _page(self, rows: list[str], above: list[str]) -> list[str]:
        """Write one page of these rows, and return the others. All pages but the last begin with `above`."""
        if self._fits(rows):
            height = len(rows)
        else:
            height = max(self._writer.rows - _AROUND - len(above), _SHORTEST)
            self._writer.raw(*above)
        if rows:
            self._writer.raw(*rows[:height])
        return rows[height:]

    def _fits(self, rows: list[str]) -> bool:
        return not self._writer.formatted or len(rows) <= self._writer.rows - _BELOW


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
