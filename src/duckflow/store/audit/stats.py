"""The audit log in numbers: how often what was asked, approved, refused and done."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

COLUMNS = ("asked", "approved", "refused", "ok", "failed", "blocked")
"""Questions and their answers, and how actions ended. Blocked: the user or the policy said no."""

_ANSWERS = {"approved": "approved", "always": "approved", "edited": "approved", "refused": "refused"}
_OUTCOMES = {"ok": "ok", "failed": "failed", "unknown": "failed", "refused": "blocked"}

Rows = defaultdict[str, Counter[str]]


class AuditStats(NamedTuple):
    """What there is in each column, by operation and by risk."""

    operations: Rows
    risks: Rows


def count_entries(contents: Iterable[Mapping[str, Any]]) -> AuditStats:
    """Count entries, one at a time. A question that was asked again is one question."""
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
