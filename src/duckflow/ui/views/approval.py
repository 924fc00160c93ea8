"""An approval as the user reads it: as small as its change, all five points if it matters (G1)."""

import unicodedata
from collections.abc import Iterable, Iterator

from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine
from duckflow.domain.questions.approval import Approval, ApprovalScope, Because, Risk
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
    "shell.take_over": "approval.may.take_over",
    "plan_tool.approve": "approval.may.plan",
    "memory.remember": "approval.may.remember",
    "mcp.accept": "approval.may.mcp_accept",
    "web.fetch": "approval.may.fetch",
}
"""Operations that are asked about in words."""
_FACTS = {
    "approval.impact.reads": "approval.fact.reads",
    "approval.impact.in_sandbox": "approval.fact.in_sandbox",
    "approval.impact.no_sandbox": "approval.fact.no_sandbox",
    "approval.impact.with_network": "approval.fact.with_network",
    "approval.impact.undo": "approval.fact.undo",
    "approval.impact.no_undo": "approval.fact.no_undo",
    "approval.impact.memory_undo": "approval.fact.memory_undo",
}
"""What an impact is called in the first line, if it has a place there."""
_EXPECTED: tuple[Because, ...] = ("mode", "risk")
"""Reasons to ask that the first line tells anyway."""
_COLOURS: dict[Risk, Colour] = {"low": "bold", "medium": "yellow", "high": "red", "forbidden": "red"}

ColouredLine = tuple[str, Colour | None]


class ApprovalView(Frozen):
    """The question, ready to be drawn. Everything in it is safe to show."""

    question: str
    facts: tuple[str, ...]
    """How much, how risky, and the way back, in a few words each."""
    risk: Risk
    risk_line: str
    intent: str
    rationale: str
    expected: bool
    """Whether it is asked for a usual reason."""
    impact: tuple[str, ...]
    alternatives: tuple[str, ...]
    difference: str
    always: str
    """What "always" would cover, in words; empty if it can't be had."""
    editable: bool


def approval_view(approval: Approval) -> ApprovalView:
    """What is asked, in the user's language.

    What the model says about it stays on its line, so that it can't draw a question of its own.
    """
    return ApprovalView(
        question=_question(approval),
        facts=tuple(_facts(approval)),
        risk=approval.risk,
        risk_line=_risk_line(approval),
        intent=on_one_line(approval.intent),
        rationale=text(f"approval.because.{approval.because}", rationale=on_one_line(approval.rationale)),
        expected=approval.because in _EXPECTED,
        impact=tuple(map(_line, approval.impact)),
        alternatives=tuple(map(_line, approval.alternatives)),
        difference=visible(approval.difference),
        always=kind_text(approval.kind) if approval.kind else "",
        editable=approval.editable,
    )


def brief_lines(view: ApprovalView) -> Iterator[ColouredLine]:
    """What, how much, risk and way back in one line; then why. A high risk has all points at once."""
    yield f"{view.question} {' · '.join(view.facts)}", _COLOURS[view.risk]
    if view.intent:
        yield text("approval.intent", intent=view.intent), None
    if not view.intent or not view.expected:
        yield view.rationale, None
    if view.risk not in ("low", "medium"):
        yield from point_lines(view)


def point_lines(view: ApprovalView) -> Iterator[ColouredLine]:
    """All points in full: risk, reason, impact, what else could be done, and what "always" would cover."""
    yield f"  {view.risk_line}", _COLOURS[view.risk]
    yield view.rationale, None
    yield from _points("approval.impact_title", view.impact)
    yield from _points("approval.instead_title", view.alternatives)
    if view.always:
        yield text("approval.always_covers", kind=view.always), "dim"


def points_text(approval: Approval) -> str:
    """The question as plain text; what it is about, the difference, comes before it."""
    return "\n".join(line for line, _ in brief_lines(approval_view(approval)))


def kind_text(kind: ApprovalScope) -> str:
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
    target = on_one_line(
        approval.outside or str(args.get("path") or args.get("url") or args.get("tool") or "")
    )
    if "lookalike" in approval.reasons:
        target = spelled_out(target)
    key = _MAY.get(operation, "approval.may.other")
    return text(key, operation=on_one_line(operation), target=target)


def _facts(approval: Approval) -> Iterator[str]:
    added, removed = _size(approval.impact)
    if added or removed:
        yield text("approval.fact.size", added=added, removed=removed)
    level = text(f"approval.fact.risk_{approval.risk}")
    why = _reasons(approval)
    yield text("approval.fact.risk_because", level=level, reasons=why) if why else level
    for line in approval.impact:
        if line.key in _FACTS:
            yield text(_FACTS[line.key])


def _size(impact: Iterable[TextLine]) -> tuple[int, int]:
    """Lines added and removed, in all files."""
    added = removed = 0
    for line in impact:
        values = {name: value for name, value in line.values.items() if isinstance(value, int)}
        added += values.get("added", 0)
        removed += values.get("removed", 0)
        if line.key == "approval.impact.creates":
            added += values.get("lines", 0)
        elif line.key == "approval.impact.deletes":
            removed += values.get("lines", 0)
    return added, removed


def _reasons(approval: Approval) -> str:
    return text("risk.and").join(text(f"risk.because.{reason}") for reason in approval.reasons)


def _risk_line(approval: Approval) -> str:
    level = text(f"risk.level.{approval.risk}")
    why = _reasons(approval)
    return text("risk.line_because", level=level, reasons=why) if why else text("risk.line", level=level)


def _line(line: TextLine) -> str:
    values = {
        name: on_one_line(value) if isinstance(value, str) else value for name, value in line.values.items()
    }
    return text(line.key, **values)


def _points(title: str, points: Iterable[str]) -> Iterator[ColouredLine]:
    listed = list(points)
    if listed:
        yield text(title), None
    for point in listed:
        yield f"    - {point}", "dim"
