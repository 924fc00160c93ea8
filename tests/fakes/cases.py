"""Cases for an evaluator, and verdicts as one writes them."""

import json
from typing import Any

from duckflow.domain.work.objective import EvaluationCase, Evidence, RequirementItem, Support


def wanted(*priorities: int) -> tuple[RequirementItem, ...]:
    """Requirements "part 1", "part 2", … with these priorities."""
    return tuple(
        RequirementItem.model_validate({"requirement": f"part {place}", "priority": priority})
        for place, priority in enumerate(priorities, start=1)
    )


def seen(
    *ids: str, text: str = "created a.py (3 lines)", supports: Support = "change"
) -> tuple[Evidence, ...]:
    """Evidence with these ids."""
    return tuple(Evidence(evidence_id=one, text=text, supports=supports) for one in ids)


def case(*priorities: int, **fields: Any) -> EvaluationCase:
    """A case in which a file was changed and e1, e2 were seen."""
    made = {
        "request": "Make a.py",
        "requirements": wanted(*(priorities or (1,))),
        "evidence": seen("e1", "e2"),
        "reply": "I made a.py.",
    }
    return EvaluationCase(**{**made, **fields})


def scored(requirement: object, score: float, *evidence: str) -> dict[str, object]:
    """One score as an evaluator writes it."""
    return {"requirement": requirement, "score": score, "evidence": list(evidence)}


def verdict(*scores: dict[str, object], **fields: object) -> str:
    """A verdict as an evaluator writes it."""
    body = {"requirement_scores": list(scores), "missing_aspects": [], "quality_assessment": "Clear."}
    return json.dumps({**body, "completion_recommendation": True, **fields}, ensure_ascii=False)
