"""Statistics of the audit log: how often operations were asked about, approved, refused and run."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

COLUMNS = ("asked", "approved", "refused", "ok", "failed", "blocked")
"""Questions, answers, and outcomes of actions. `blocked`: the user or the policy refused the action."""

_ANSWERS = {"approved": "approved", "always": "approved", "edited": "approved", "refused": "refused"}
_OUTCOMES = {"ok": "ok", "failed": "failed", "unknown": "failed", "refused": "blocked"}

Rows = defaultdict[str, Counter[str]]


class AuditStats(NamedTuple):
    """Counts for each column, by operation and by risk."""

    operations: Rows
    risks: Rows


def count_entries(contents: Iterable[Mapping[str, Any]]) -> AuditStats:
    """Count entries one at a time. A question that was repeated counts once."""
    stats = AuditStats(defaultdict(Counter), defaultdict(Counter))
    open_questions: set[tuple[str, str]] = set()
    for content in contents:
        question = str(content.get("session")), str(content.get("approval"))
        match content.get("kind"):
            case "action_finished":
                _count(stats.operations, content.get("operation"), _OUTCOMES.get(str(content.get("outcome"))))
            case "approval_requested" if question not in open_questions:
                open_questions.add(question)
                _count_question(stats, content, "asked")
            case "approval_answered":
                open_questions.discard(question)
                _count_question(stats, content, _ANSWERS.get(str(content.get("verdict"))))
            case _:
                pass
    return stats


def _count_question(stats: AuditStats, content: Mapping[str, Any], column: str | None) -> None:
    _count(stats.operations, content.get("operation"), column)
    _count(stats.risks, content.get("risk") or "unknown", column)


def _count(rows: Rows, name: object, column: str | None) -> None:
    if name and column:
        rows[str(name)][column] += 1
