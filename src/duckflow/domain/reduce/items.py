"""Maintains the items (goal, constraints, plan and so on): limits their length and finds conflicts."""

from collections.abc import Iterable

from duckflow.domain.decision import Decision, StateDelta, is_no
from duckflow.domain.frozen import replace
from duckflow.domain.state import Items
from duckflow.domain.text import cut, letters_of

LONG, SHORT = 200, 100
COUNTS = {"constraints": 2, "plan_brief": 3, "open_questions": 2, "context_refs": 100, "decision_log": 100}
LOGS = ("context_refs", "decision_log")
"""Items to which entries are added at the end, so that the oldest entries are dropped first."""


def set_items(items: Items, delta: StateDelta) -> tuple[Items, tuple[str, ...]]:
    """Return the items with `delta` applied, and notes for the model about values that were cut (E1, E2)."""
    changes: dict[str, str | tuple[str, ...]] = {}
    notes: list[str] = []
    for name, value in delta.model_dump(exclude_none=True).items():
        kept = _fit(name, value)
        changes[name] = kept
        if kept != value:
            shown = kept if isinstance(kept, str) else "; ".join(kept)
            notes.append(f"{name} was too long and is now: {shown}")
    if not changes:
        return items, ()
    changes.setdefault("last_delta", cut(f"set {', '.join(changes)}", LONG))
    return Items.model_validate({**dict(items), **changes}), tuple(notes)


def check_items(items: Items, decision: Decision) -> Items:
    """Add each conflict between items as an open question (E4)."""
    open_still = tuple(one for one in items.open_questions if not _answered(one, items.decision_log))
    conflicts = list(_conflicts(items, decision))
    questions = (*conflicts, *(one for one in open_still if one not in conflicts))
    kept = tuple(cut(one, SHORT) for one in questions[: COUNTS["open_questions"]])
    return items if kept == items.open_questions else replace(items, open_questions=kept)


def _conflicts(items: Items, decision: Decision) -> Iterable[str]:
    if is_no(decision.constraint_check):
        yield f"How can the plan keep the constraints? {decision.constraint_check}"
    for step in items.plan_brief:
        for constraint in items.constraints:
            if _forbids(constraint, step):
                yield f"Does “{step}” break “{constraint}”?"


def _forbids(constraint: str, step: str) -> bool:
    wanted, said = letters_of(step), letters_of(constraint)
    return len(wanted) > 3 and wanted in said and wanted != said


def _answered(question: str, log: Iterable[str]) -> bool:
    asked = letters_of(question)
    return any(asked and asked in letters_of(entry) for entry in log)


def _fit(name: str, value: str | tuple[str, ...]) -> str | tuple[str, ...]:
    if isinstance(value, str):
        return cut(value, LONG)
    kept = value[-COUNTS[name] :] if name in LOGS else value[: COUNTS[name]]
    return tuple(cut(text, SHORT) for text in kept)
