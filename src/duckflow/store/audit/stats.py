"""The audit log in numbers: how often what was asked, approved, refused and done."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_APPROVED = ("approved", "always", "edited")
_ACTION = "action_finished"


@dataclass
class Counts:
    """Questions and their answers, and how actions ended."""

    asked: int = 0
    approved: int = 0
    refused: int = 0
    ok: int = 0
    failed: int = 0
    blocked: int = 0
    """Actions that did not run, because the user or the policy said no."""


@dataclass
class AuditStats:
    """The same by operation and by risk."""

    operations: dict[str, Counts] = field(default_factory=dict[str, Counts])
    risks: dict[str, Counts] = field(default_factory=dict[str, Counts])


def count_entries(contents: Iterable[Mapping[str, Any]]) -> AuditStats:
    """Count entries, one at a time. A question that was asked again is one question."""
    stats = AuditStats()
    open_questions: set[tuple[str, str]] = set()
    for content in contents:
        kind, operation = content.get("kind"), str(content.get("operation", ""))
        counts = stats.operations.setdefault(operation, Counts()) if operation and _counts(kind) else Counts()
        question = str(content.get("session")), str(content.get("approval"))
        if kind == _ACTION:
            _count_outcome(counts, content.get("outcome"))
        elif kind == "approval_requested" and question not in open_questions:
            open_questions.add(question)
            _count_verdict((counts, _by_risk(stats, content)), "asked")
        elif kind == "approval_answered":
            open_questions.discard(question)
            _count_verdict((counts, _by_risk(stats, content)), content.get("verdict"))
    return stats


def _counts(kind: object) -> bool:
    return kind in (_ACTION, "approval_requested", "approval_answered")


def _by_risk(stats: AuditStats, content: Mapping[str, Any]) -> Counts:
    return stats.risks.setdefault(str(content.get("risk") or "unknown"), Counts())


def _count_verdict(rows: Iterable[Counts], verdict: object) -> None:
    for row in rows:
        row.asked += verdict == "asked"
        row.approved += verdict in _APPROVED
        row.refused += verdict == "refused"


def _count_outcome(row: Counts, outcome: object) -> None:
    row.ok += outcome == "ok"
    row.failed += outcome in ("failed", "unknown")
    row.blocked += outcome == "refused"
