"""After the last iteration: what the user is told, and what each of their choices means (SPEC J5)."""

from typing import Literal, get_args

from pydantic import JsonValue

from duckflow.domain.objective import TaskObjective
from duckflow.domain.text import cut

EscalationChoice = Literal["more_detail", "another_approach", "accept", "technical_help", "stop"]
ESCALATION_CHOICES: tuple[EscalationChoice, ...] = get_args(EscalationChoice)
"""What the user may choose, in the order shown."""

WISHES: dict[EscalationChoice, str] = {
    "more_detail": "The user says more exactly what is wanted:",
    "another_approach": (
        "The user wants another approach, different in kind. Do not repeat: {strategies}. Keep what is met."
    ),
    "technical_help": (
        "The user wants to understand what is in the way. Change nothing: explain the cause from the "
        "evidence, and the ways there are to mend it."
    ),
}
"""What the model is told of a choice with which the work goes on."""

_LINES, _LINE, _REQUEST = 5, 160, 300


def situation_of(objective: TaskObjective) -> dict[str, JsonValue]:
    """The slots of the situation report: request, attempts, score, what is missing and collected, quality."""
    evaluation = objective.evaluation
    unmet = [item.requirement for item in objective.requirements if item.satisfaction < 1]
    missing = evaluation.missing_aspects if evaluation else ()
    return {
        "request": cut(" ".join(objective.request.split()), _REQUEST),
        "attempts": objective.iterations,
        "most": objective.max_iterations,
        "score": f"{objective.satisfaction:.2f}",
        "missing": _listed(missing or unmet),
        "collected": _listed(objective.results[-_LINES:]),
        "quality": cut(evaluation.quality_assessment, _REQUEST) if evaluation else "",
    }


def escalation_wish(choice: EscalationChoice, objective: TaskObjective, said: str = "") -> str:
    """What the model is told of a choice, with what the user added."""
    strategies = "; ".join(objective.strategies) or "what was tried before"
    told = WISHES.get(choice, "").replace("{strategies}", strategies)
    return f"{told} {said}".strip()


def _listed(lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"  • {cut(' '.join(line.split()), _LINE)}" for line in lines[:_LINES])
