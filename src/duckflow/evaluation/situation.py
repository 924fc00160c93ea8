"""After the last iteration: what the user is told of where the request stands (SPEC J5)."""

from pydantic import JsonValue

from duckflow.domain.objective import EvaluationRules, TaskObjective
from duckflow.domain.text import cut

_LINES, _LINE, _REQUEST = 5, 160, 300


def situation_of(objective: TaskObjective, rules: EvaluationRules) -> dict[str, JsonValue]:
    """The parts of the situation report: request, attempts, score, what is missing and collected, quality."""
    evaluation = objective.evaluation
    unmet = [item.requirement for item in objective.requirements if item.satisfaction < 1]
    missing = evaluation.missing_aspects if evaluation else ()
    return {
        "request": cut(" ".join(objective.request.split()), _REQUEST),
        "attempts": objective.iterations,
        "most": rules.max_iterations,
        "score": f"{objective.satisfaction:.2f}",
        "missing": _listed(missing or unmet),
        "collected": _listed(objective.results[-_LINES:]),
        "quality": cut(" ".join(evaluation.quality_assessment.split()), _REQUEST) if evaluation else "",
    }


def _listed(lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"  • {cut(' '.join(line.split()), _LINE)}" for line in lines[:_LINES])
