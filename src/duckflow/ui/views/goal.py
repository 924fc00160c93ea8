"""What a request is for and how far it is met, in the user's language (J8, J9)."""

from collections.abc import Iterator, Sequence

from duckflow.domain.events import AttemptPlanned, Evaluated, RequirementsFound
from duckflow.domain.state import AgentState, Request
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    AttemptResult,
    RequirementItem,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.domain.work.outcomes import ENDED
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width

MET, PARTLY = 0.8, 0.3
"""From which score on a requirement is marked as met, and as met in part."""

_LINE, _LONG = 100, 200
_DEDUCTIONS = ("forgotten", "no_evidence")
"""Reasons why a single requirement counts less; all others hold the whole down."""

_LINES = 20
_MISSING = 5
_IDS = 8


def goal_text(state: AgentState) -> str:
    """All that /goal says: of the request in hand, else of the one before."""
    request = state.request or state.finished
    return "\n".join(_goal(request)) if request else text("goal.none")


def requirements_line(event: RequirementsFound) -> str:
    """How many requirements were found; nothing for talk, which has none."""
    if not event.requirements:
        return ""
    if event.by == "program":
        return text("evaluation.requirements_program")
    return text("evaluation.requirements", count=len(event.requirements))


def attempt_text(event: AttemptPlanned) -> str:
    """How the next attempt goes about it."""
    strategy = _short(event.plan.strategy, _LONG) or text("goal.no_strategy")
    return text("evaluation.attempt", number=event.number, strategy=strategy)


def evaluation_text(event: Evaluated) -> str:
    """How far the request is met, and what is missing."""
    evaluation = event.evaluation
    score = f"{evaluation.overall_score:.2f}"
    checked = _tally(event.results)
    if evaluation.by == "nobody":
        return "\n".join([text("evaluation.not_judged"), *checked])
    if evaluation.done:
        ran = any(one.state == "passed" and one.kind != "diagnostic" for one in event.results)
        unproven = [text("evaluation.only_read")] if evaluation.by == "program" and not ran else []
        return "\n".join([text("evaluation.done", score=score), *checked, *unproven])
    missing = [text("evaluation.missing", what=_short(one)) for one in evaluation.missing_aspects[:_MISSING]]
    return "\n".join([text("evaluation.not_done", score=score), *_held_down(evaluation), *checked, *missing])


def _held_down(evaluation: SatisfactionEvaluation) -> Iterator[str]:
    """Why the whole counts as not done, whatever the mean of its parts is (J3)."""
    yield from (text(f"goal.capped.{cap}") for cap in evaluation.caps if cap not in _DEDUCTIONS)


def _tally(results: Sequence[CheckResult]) -> list[str]:
    """What was run, in numbers, in one line; nothing if nothing was."""
    if not results:
        return []
    states = [one.state for one in results]
    counted = {state: states.count(state) for state in ("passed", "failed", "not_run")}
    return [text("evaluation.checked", **counted)]


def _goal(request: Request) -> Iterator[str]:
    objective = request.objective
    yield text("goal.request", request=_short(objective.request, _LONG))
    yield from _requirements(request, objective)
    yield from _verdict(objective.evaluation)
    yield from map(_check, objective.checks[:_LINES])
    yield from _more(objective.checks)
    yield from _attempts(objective)
    if objective.learned_constraints:
        yield text("goal.learned", what=_short("; ".join(objective.learned_constraints), _LONG))
    if request.outcome in ENDED:
        yield text(f"goal.outcome.{request.outcome}")


def _requirements(request: Request, objective: TaskObjective) -> Iterator[str]:
    if not objective.requirements:
        ended = request.outcome in ENDED
        yield text("goal.no_parts") if ended else text("goal.searching")
        return
    scores = objective.evaluation.requirement_scores if objective.evaluation else ()
    scored = {one.requirement: one for one in scores}
    for item in objective.requirements[:_LINES]:
        yield _requirement(item)
        if (score := scored.get(item.requirement)) is not None and score.cap in _DEDUCTIONS:
            yield _deduction(score)
    yield from _more(objective.requirements)


def _deduction(score: RequirementScore) -> str:
    """Why a requirement counts less than the evaluator said (J3)."""
    claimed = "–" if score.claimed is None else f"{score.claimed:.2f}"
    return text(f"goal.cap.{score.cap}", claimed=claimed, score=f"{score.score:.2f}")


def _requirement(item: RequirementItem) -> str:
    ids = ", ".join(item.evidence[:_IDS])
    return text(
        "goal.requirement",
        mark="●" if item.satisfaction >= MET else "◐" if item.satisfaction >= PARTLY else "○",
        score=f"{item.satisfaction:.2f}",
        requirement=_short(item.requirement),
        priority=text(f"goal.priority_{item.priority}"),
        evidence=text("goal.evidence", ids=on_one_line(ids)) if ids else "",
    )


def _verdict(evaluation: SatisfactionEvaluation | None) -> Iterator[str]:
    if evaluation is None or evaluation.by == "nobody":
        yield text("goal.not_judged") if evaluation is None else text("evaluation.not_judged")
        return
    score = f"{evaluation.overall_score:.2f}"
    yield (
        text("goal.verdict_done", score=score) if evaluation.done else text("goal.verdict_open", score=score)
    )
    yield from _held_down(evaluation)
    if evaluation.quality_assessment.strip():
        yield text("goal.quality", quality=_short(evaluation.quality_assessment, _LONG))
    if evaluation.missing_aspects and not evaluation.done:
        yield text("goal.missing")
        yield from (f"    • {_short(one)}" for one in evaluation.missing_aspects[:_LINES])
        yield from _more(evaluation.missing_aspects)


def _check(result: CheckResult) -> str:
    """One check that was run: how it ended, and what it said."""
    return text(
        f"goal.check.{result.state}",
        name=_short(result.name),
        detail=f": {_short(result.detail)}" if result.detail and result.state != "passed" else "",
        evidence=text("goal.evidence", ids=on_one_line(result.evidence_id)) if result.evidence_id else "",
    )


def _attempts(objective: TaskObjective) -> Iterator[str]:
    for attempt in objective.attempts:
        yield text(
            "goal.attempt",
            number=attempt.number,
            score=f"{attempt.score:.2f}",
            strategy=_strategy(attempt),
        )
    current = objective.current
    if current.strategy or current.tried:
        yield text("goal.current", number=current.number, strategy=_strategy(current))


def _strategy(attempt: AttemptResult) -> str:
    return _short(attempt.strategy) or text("goal.no_strategy")


def _more(lines: Sequence[object]) -> Iterator[str]:
    if len(lines) > _LINES:
        yield text("goal.more", count=len(lines) - _LINES)


def _short(said: str, columns: int = _LINE) -> str:
    return cut_to_width(on_one_line(said), columns)
