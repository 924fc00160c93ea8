"""Statistics of the audit log: how often operations were asked about, approved, refused and run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

COLUMNS = ("asked", "approved", "refused", "ok", "failed", "blocked")
"""Columns: questions, answers, and outcomes of actions (blocked: refused by the user or the policy)."""

_ANSWERS = {"approved": "approved", "always": "approved", "edited": "approved", "refused": "refused"}
_OUTCOMES = {"ok": "ok", "failed": "failed", "unknown": "failed", "refused": "blocked"}

Rows = defaultdict[str, Counter[str]]


class AuditStats(NamedTuple):
    """Counts for each column, by operation and by risk."""

    operations: Rows
    risks: Rows


def count_entries(contents: Iterable[Mapping[str, Any]]) -> AuditStats:
    """Count the entries by operation and risk. A question that was repeated counts once."""
    stats = AuditStats(defaultdict(Counter), defaultdict(Counter))
    open_questions: set[tuple[str, str]] = set()
    for content in contents:
        kind, operation = content.get("kind"), str(content.get("operation") or "")
        question = str(content.get("session")), str(content.get("approval"))
        column = None
        if kind == "action_finished":
            column = _OUTCOMES.get(str(content.get("outcome")))
        elif kind == "approval_requested" and question not in open_questions:
            open_questions.add(question)
            column = "asked"
        elif kind == "approval_answered":
            open_questions.discard(question)
            column = _ANSWERS.get(str(content.get("verdict")))
        if column and operation:
            stats.operations[operation][column] += 1
        if column and kind != "action_finished":
            stats.risks[str(content.get("risk") or "unknown")][column] += 1
    return stats
