"""Questions in the form that editors show: requests for permission, or choices (G1, I6)."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from acp import helpers, schema

from duckflow.api import Answer, OpenSession, Question
from duckflow.cli.editors.updates import kind_of, locations_of
from duckflow.domain.errors import ToolError
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation, effect_of
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import visible
from duckflow.ui.transcript import fenced
from duckflow.ui.views.approval import approval_view, brief_lines
from duckflow.ui.views.events import consultation_text


class PermissionQuestion(NamedTuple):
    """A question as an editor shows it, and the answer of each button."""

    call: schema.ToolCallUpdate
    options: list[schema.PermissionOption]
    answers: dict[str, Answer]


async def permission_of(session: OpenSession, question: Question) -> PermissionQuestion:
    """Return a question in the form that an editor shows."""
    if isinstance(question, Consultation):
        return _consultation(question)
    return _approval(question, session.app.workspace.root, await _difference(session, question))


def question_text(question: Question) -> str:
    """Return a question as text, for an editor that can't show buttons."""
    if isinstance(question, Consultation):
        return consultation_text(question)
    shown = visible(question.difference)
    difference = fenced(shown, "diff") if shown.strip() else ""
    return f"{approval_view(question).question}\n{_points(question)}\n\n{difference}"


def _approval(
    approval: Approval, root: Path, difference: Sequence[schema.FileEditToolCallContent]
) -> PermissionQuestion:
    told, view = _points(approval) if difference else question_text(approval), approval_view(approval)
    options = [_option("yes", text("editors.yes"), "allow_once")]
    answers: dict[str, Answer] = {"yes": AnswerApproval(yes=True), "no": AnswerApproval(yes=False)}
    if approval.kind is not None:
        options.append(_option("always", text("editors.always", kind=view.always), "allow_always"))
        answers["always"] = AnswerApproval(yes=True, always=True)
    options.append(_option("no", text("editors.no"), "reject_once"))
    call = schema.ToolCallUpdate(
        tool_call_id=approval.approval_id,
        title=view.question,
        kind=kind_of(approval.action.operation),
        status="pending",
        content=[helpers.tool_content(helpers.text_block(told)), *difference],
        locations=locations_of(approval.action, root),
        raw_input=approval.action.args,
    )
    return PermissionQuestion(call, options, answers)


def _consultation(asked: Consultation) -> PermissionQuestion:
    call = schema.ToolCallUpdate(
        tool_call_id=asked.consultation_id,
        title=visible(text(asked.situation, **asked.values)).partition("\n")[0],
        kind="think",
        status="pending",
        content=[helpers.tool_content(helpers.text_block(consultation_text(asked)))],
    )
    options = [
        _option(
            choice,
            text(f"consultation.choice.{choice}"),
            "reject_once" if effect_of(choice).ends == "stopped" else "allow_once",
        )
        for choice in asked.choices
    ]
    return PermissionQuestion(call, options, {choice: ChooseWay(choice=choice) for choice in asked.choices})


def _points(approval: Approval) -> str:
    """Return an approval's facts, intent, impact and alternatives; the diff is shown separately."""
    view = approval_view(approval)
    return "\n".join(line for line, _ in [*brief_lines(view, whole=True)][1:])


async def _difference(session: OpenSession, approval: Approval) -> list[schema.FileEditToolCallContent]:
    """Return the change for the editor's own diff view; empty if that view would hide a part of it."""
    path = approval.action.args.get("path")
    hidden = visible(approval.difference) != approval.difference
    if not isinstance(path, str) or not approval.editable or hidden:
        return []
    workspace = session.app.workspace
    new = await session.app.chat.proposal()
    if new is None:
        return []
    try:
        old = workspace.read_encoded(workspace.relative(path)).text if any(approval.before.values()) else None
    except ToolError:
        return []
    return [helpers.tool_diff_content(str(workspace.root / path), new, old)]


def _option(name: str, shown: str, kind: schema.PermissionOptionKind) -> schema.PermissionOption:
    return schema.PermissionOption(option_id=name, name=shown, kind=kind)
