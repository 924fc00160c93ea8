"""Text of an approval question: short for a small risk, with all details for a high risk (G1)."""

import unicodedata
from collections.abc import Iterable, Iterator

from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine
from duckflow.domain.questions.approval import Approval, ApprovalScope, Because, Risk
from duckflow.i18n.catalogue import has_text, text
from duckflow.i18n.hosts import host_names
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.writer import Colour
from duckflow.ui.views.live.progress import action_key

_FACTS = ("reads", "in_sandbox", "no_sandbox", "with_network", "undo", "no_undo", "redo", "memory_undo")
"""Impacts of a change that have a short form."""
_FILES = (
    "files_",
    "build_folder",
    "overwrites",
    "dropped_",
    "command_",
    "moves",
    "in_all",
    "not_kept",
    "namesakes",
)
"""Beginnings of impacts that say which files change. They are shown below the question."""
_EXPECTED: tuple[Because, ...] = ("mode", "consent")
"""Reasons for asking that need no words if the intent is known."""
_PLAN = "plan_tool.approve"
"""Operation whose question shows the plan, with its own risk."""
_BRIEF: tuple[Risk, ...] = ("low", "medium")
"""Risks at which a question leaves out the details."""
_COLOURS: dict[Risk, Colour] = {"low": "bold", "medium": "yellow", "high": "red", "forbidden": "red"}

ColouredLine = tuple[str, Colour | None]


class ApprovalView(Frozen):
    """Texts of the question. All of them are escaped, so that they are safe to show."""

    question: str
    files: tuple[str, ...]
    """Files that a command or a move changes, and what is special about them."""
    facts: tuple[str, ...]
    """Size, risk and possibility of undo, in a few words each."""
    risk: Risk
    intent: str
    rationale: str
    because: Because
    expected: bool
    """True if the reason for asking is one of the usual ones."""
    impact: tuple[str, ...]
    alternatives: tuple[str, ...]
    always: str
    """Scope of "always" in words; empty if "always" is not offered."""


def approval_view(approval: Approval) -> ApprovalView:
    """Return the texts of the question. The model's words are kept in one line, so they can't imitate one."""
    reasons = text("risk.and").join(text(f"risk.because.{reason}") for reason in approval.reasons)
    risk = text(f"approval.fact.risk_{approval.risk}")
    risk = text("approval.fact.risk_because", level=risk, reasons=reasons) if reasons else risk
    names = [line.key.removeprefix("approval.impact.") for line in approval.impact]
    impact = tuple(on_one_line(text(line.key, **line.values)) for line in approval.impact)
    because = f"approval.because.{approval.because}"
    return ApprovalView(
        question=_question(approval),
        files=tuple(one for name, one in zip(names, impact, strict=True) if name.startswith(_FILES)),
        facts=tuple(_facts(approval, names, "" if _names_risk(approval) else risk)),
        risk=approval.risk,
        intent=on_one_line(approval.intent),
        rationale=text(because, rationale=on_one_line(approval.rationale), risk=risk),
        because=approval.because,
        expected=approval.because in _EXPECTED,
        impact=impact,
        alternatives=tuple(on_one_line(text(line.key, **line.values)) for line in approval.alternatives),
        always=kind_text(approval.kind) if approval.kind else "",
    )


def brief_lines(view: ApprovalView, *, whole: bool = False, intent: bool = True) -> Iterator[ColouredLine]:
    """Yield question, files, facts and reasons; for a high risk or if `whole`, all details.

    Without `intent`, the purpose is left out, because the user has just read it.
    """
    yield from head_lines(view)
    if view.intent and intent:
        yield text("approval.intent", intent=view.intent), None
    if _is_told(view):
        yield view.rationale, None
    if whole or view.risk not in _BRIEF:
        yield from point_lines(view)


def head_lines(view: ApprovalView) -> Iterator[ColouredLine]:
    """Yield what is asked: the question, the files and the facts."""
    yield view.question, _COLOURS[view.risk]
    yield from ((f"  {one}", None) for one in view.files)
    if view.facts:
        yield f"  {' · '.join(view.facts)}", _COLOURS[view.risk]


def point_lines(view: ApprovalView) -> Iterator[ColouredLine]:
    """Yield the details that the question leaves out: impact, alternatives, and what "always" would allow."""
    if not _is_told(view):
        yield view.rationale, None
    for title, points in (
        ("approval.impact_title", [one for one in view.impact if one not in view.files]),
        ("approval.instead_title", view.alternatives),
    ):
        if points:
            yield text(title), None
        for point in points:
            yield f"    - {point}", "dim"
    if view.always:
        yield text("approval.always_covers", kind=view.always), "dim"


def _is_told(view: ApprovalView) -> bool:
    return not view.expected or not (view.intent or view.because == "consent")


def _names_risk(approval: Approval) -> bool:
    """Return whether the reason or the plan below the question names the risk already."""
    return approval.because == "risk" or approval.action.operation == _PLAN


def points_text(approval: Approval) -> str:
    """Return the question as plain text, without its diff, which is shown after it."""
    return "\n".join(line for line, _ in brief_lines(approval_view(approval)))


def kind_text(kind: ApprovalScope) -> str:
    """Return the scope of "always" in words for the user."""
    if kind.what == "edits" and kind.scope == ".":
        return text("approval.kind.edits_at_top")
    named = kind.what == "hosts"
    scope = text("risk.and").join(host_names(kind.scope.split())) if named else kind.scope
    return text(f"approval.kind.{kind.what}", scope=on_one_line(scope))


def _question(approval: Approval) -> str:
    operation, args = approval.action.operation, approval.action.args
    named = (args[name] for name in ("path", "url", "query", "tool", "to") if args.get(name))
    target = on_one_line(approval.outside or str(next(named, "")))
    if "lookalike" in approval.reasons:  # name the letters that look like others
        foreign = sorted({letter for letter in target if letter > "\x7f" and letter.isalpha()})
        letters = ", ".join(f"{letter} = {unicodedata.name(letter, hex(ord(letter)))}" for letter in foreign)
        target = f"{target} ({letters})" if letters else target
    key = f"approval.may.{action_key(operation, args)}"
    if not has_text(key):  # operation of a plugin or an MCP server
        key = "approval.may.other"
    return text(key, operation=on_one_line(operation), target=target)


def _facts(approval: Approval, impacts: Iterable[str], risk: str) -> Iterator[str]:
    if approval.risk not in _BRIEF:  # all details follow, which say the rest
        yield from (risk,) if risk else ()
        return
    added, removed = map(sum, zip((0, 0), *map(_size, approval.impact), strict=True))
    if added or removed:
        yield text("approval.fact.size", added=added, removed=removed)
    if risk:
        yield risk
    yield from (text(f"approval.fact.{name}") for name in impacts if name in _FACTS)


def _size(line: TextLine) -> tuple[int, int]:
    """Return the number of lines added and removed in one file."""
    values = {name: value for name, value in line.values.items() if isinstance(value, int)}
    lines = values.get("lines", 0)
    if line.key == "approval.impact.creates":
        return lines, 0
    if line.key == "approval.impact.deletes":
        return 0, lines
    return values.get("added", 0), values.get("removed", 0)
