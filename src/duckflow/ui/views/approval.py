"""An approval as the user reads it: five points in their language, and what answers would mean (SPEC G1)."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator

from duckflow.domain.approval import Approval, ApprovalLine, Kind, Risk
from duckflow.domain.frozen import Frozen
from duckflow.i18n.catalogue import text
from duckflow.ui.output.colours import Colour
from duckflow.ui.output.escaping import on_one_line, visible

_MAY = {
    "file_ops.read_file": "approval.may.read_file",
    "file_ops.write_file": "approval.may.write_file",
    "file_ops.edit_file": "approval.may.edit_file",
    "file_ops.delete_file": "approval.may.delete_file",
    "file_ops.move_file": "approval.may.move_file",
    "file_ops.outline": "approval.may.read_file",
    "shell.run": "approval.may.run",
    "plan_tool.approve": "approval.may.plan",
    "memory.remember": "approval.may.remember",
}
"""Operations that are asked about in words."""


class ApprovalView(Frozen):
    """The question, ready to be drawn. Everything in it is safe to show."""

    question: str
    risk: Risk
    risk_line: str
    intent: str
    rationale: str
    impact: tuple[str, ...]
    alternatives: tuple[str, ...]
    difference: str
    always: str
    """What "always" would cover, in words; empty where it can't be had."""
    editable: bool


def approval_view(approval: Approval) -> ApprovalView:
    """What is asked, in the user's language.

    What the model says of it stays on its line, so that it can't draw a question of its own.
    """
    return ApprovalView(
        question=_question(approval),
        risk=approval.risk,
        risk_line=_risk_line(approval),
        intent=on_one_line(approval.intent),
        rationale=text(f"approval.because.{approval.because}", rationale=on_one_line(approval.rationale)),
        impact=tuple(map(_line, approval.impact)),
        alternatives=tuple(map(_line, approval.alternatives)),
        difference=visible(approval.difference),
        always=kind_text(approval.kind) if approval.kind else "",
        editable=approval.editable,
    )


def approval_text(approval: Approval, paint: Callable[[str], str] = str) -> str:
    """The five points as text, the difference last and whole."""
    view = approval_view(approval)
    lines = ["", view.question, f"  {view.risk_line}"]
    if view.intent:
        lines.append(text("approval.intent", intent=view.intent))
    lines.append(view.rationale)
    lines += _points("approval.impact_title", view.impact)
    lines += _points("approval.instead_title", view.alternatives)
    if view.always:
        lines.append(text("approval.always_covers", kind=view.always))
    return "\n".join([*lines, paint(view.difference)])


def kind_text(kind: Kind) -> str:
    """What "always" covers, in words the user can judge."""
    if kind.what == "edits" and kind.scope == ".":
        return text("approval.kind.edits_at_top")
    return text(f"approval.kind.{kind.what}", scope=on_one_line(kind.scope))


def spelled_out(path: str) -> str:
    """A path in which letters that imitate others are named."""
    foreign = sorted({letter for letter in path if letter > "\x7f" and letter.isalpha()})
    named = ", ".join(f"{letter} = {unicodedata.name(letter, hex(ord(letter)))}" for letter in foreign)
    return f"{path} ({named})" if named else path


def _question(approval: Approval) -> str:
    operation, args = approval.action.operation, approval.action.args
    target = on_one_line(approval.outside or str(args.get("path", "")))
    if "lookalike" in approval.reasons:
        target = spelled_out(target)
    key = _MAY.get(operation, "approval.may.other")
    return text(key, operation=on_one_line(operation), target=target)


def _risk_line(approval: Approval) -> str:
    level = text(f"risk.level.{approval.risk}")
    why = text("risk.and").join(text(f"risk.because.{reason}") for reason in approval.reasons)
    return text("risk.line_because", level=level, reasons=why) if why else text("risk.line", level=level)


def _line(line: ApprovalLine) -> str:
    values = {
        name: on_one_line(value) if isinstance(value, str) else value for name, value in line.values.items()
    }
    return text(line.key, **values)


def _points(title: str, points: Iterable[str]) -> list[str]:
    listed = [f"    - {point}" for point in points]
    return [text(title), *listed] if listed else []


_RISKS: dict[Risk, Colour] = {"low": "green", "medium": "yellow", "high": "red", "forbidden": "red"}


def question_lines(view: ApprovalView) -> Iterator[tuple[str, Colour | None]]:
    """What is asked, its risk, what it is for, why it is asked, what it does, and what else could be done."""
    yield f"\n{view.question}", "bold"
    yield f"  {view.risk_line}", _RISKS[view.risk]
    if view.intent:
        yield text("approval.intent", intent=view.intent), None
    yield view.rationale, None
    for title, points in (
        ("approval.impact_title", view.impact),
        ("approval.instead_title", view.alternatives),
    ):
        if points:
            yield text(title), None
            for point in points:
                yield f"    - {point}", "dim"
    if view.always:
        yield text("approval.always_covers", kind=view.always), "dim"
