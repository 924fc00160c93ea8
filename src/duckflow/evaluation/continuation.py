"""Input for the next attempt: facts about earlier attempts, and actions it may not repeat (J4). Pure."""

from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from duckflow.domain.decision import Action
from duckflow.domain.reduce.objective import digest_of
from duckflow.domain.text import cut, one_line, percent
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    AttemptResult,
    ContinuationContext,
    RequirementScore,
    SatisfactionEvaluation,
    TaskObjective,
)
from duckflow.evaluation.verdict import DONE_AT
from duckflow.services.evaluation import MissingInfoAnalysis

TRIED_BEFORE = "These actions were tried before and did not help. Try another way."
"""Reason for the model why a list of a failed attempt does not run again."""

MOST_ATTEMPTS, MOST_LINES = 3, 6

_RUN, _TAKE_OVER = "shell.run", "shell.take_over"

_LINE = 240
_REPORT_LINES, _REPORT_LINE, _REQUEST = 5, 160, 300


def build_continuation(objective: TaskObjective, missing: MissingInfoAnalysis) -> ContinuationContext:
    """Collect what is known after a verdict of "not done", with a limit on each part."""
    attempts = objective.failed_attempts[-MOST_ATTEMPTS:]
    evaluation = objective.evaluation
    scores = evaluation.requirement_scores if evaluation else ()
    tried = {strategy.casefold() for strategy in objective.strategies}
    problems = _first(_problems(evaluation))
    refused = (line for one in attempts for line in one.refused if TRIED_BEFORE not in line)
    return ContinuationContext(
        score=objective.satisfaction,
        needed=DONE_AT,
        attempts=attempts,
        errors=_last(line for one in attempts for line in one.errors),
        checks=_first(map(_check_line, sorted(objective.checks, key=lambda one: one.state != "failed"))),
        partial_successes=_first(_met(scores)),
        problems=problems,
        improvements=tuple(
            line for line in _first(one.what for one in missing.missing) if line not in problems
        ),
        alternatives=_first(text for text in missing.alternatives if text.casefold() not in tried),
        unavailable=_last(line.replace(_TAKE_OVER, "effects of a command") for line in refused),
        failed_approaches=_last(one.strategy for one in attempts if one.forbidden),
        limitations=_last((*objective.learned_constraints, *missing.constraints)),
    )


def equal_to_failed(
    actions: Sequence[Action], failed_attempts: Iterable[AttemptResult], revision: int
) -> bool:
    """Return whether a failed attempt ran these same actions, so that repeating them is useless.

    Actions that changed nothing may be repeated once files have changed (`revision` differs), and commands
    at any time: tests that failed must run again.
    """
    if all(action.operation == _RUN for action in actions):
        return False
    wanted = digest_of(actions)
    return any(
        tried.digest == wanted and (tried.changed or tried.revision == revision)
        for attempt in failed_attempts
        for tried in attempt.tried
    )


def _met(scores: Iterable[RequirementScore]) -> Iterable[str]:
    for one in scores:
        seen = f" [{', '.join(one.evidence)}]" if one.evidence else ""
        if one.score >= DONE_AT:
            yield f"{one.requirement}{seen}"
        elif one.score > 0 and one.evidence:
            yield f"in part ({one.score:.2f}): {one.requirement}{seen}"


def _problems(evaluation: SatisfactionEvaluation | None) -> Iterable[str]:
    if evaluation is None:
        return
    yield from evaluation.missing_aspects
    if "nothing_changed" in evaluation.caps:
        yield "no file was changed"
    if "failing_verification" in evaluation.caps and not evaluation.missing_aspects:
        yield "a required check failed"
    for one in sorted(evaluation.requirement_scores, key=lambda one: one.priority):
        if one.score < DONE_AT:
            unproven = ", nothing shows it" if (one.claimed or 0) > one.score else ""
            yield f"not met ({one.score:.2f}{unproven}): {one.requirement}"


def _first(lines: Iterable[str]) -> tuple[str, ...]:
    return _tidy(lines)[:MOST_LINES]


def _last(lines: Iterable[str]) -> tuple[str, ...]:
    return _tidy(lines)[-MOST_LINES:]


def _tidy(lines: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one_line(line, _LINE) for line in lines if line.strip()))


def situation_of(objective: TaskObjective) -> dict[str, JsonValue]:
    """Return the parts of the situation report: request, attempts, score, missing parts, results, quality."""
    evaluation = objective.evaluation
    unmet = [item.requirement for item in objective.requirements if item.satisfaction < 1]
    return {
        "request": one_line(objective.request, _REQUEST),
        "attempts": objective.iterations,
        "score": percent(objective.satisfaction) if evaluation and evaluation.by == "model" else "",
        "missing": _listed(objective.missing or unmet),
        "quality": one_line(evaluation.quality_assessment, _REQUEST) if evaluation else "",
        "checks": _listed([_check_line(one) for one in objective.checks]),
    }


def _check_line(result: CheckResult) -> str:
    mark = {"passed": "✓", "failed": "✗", "not_run": "–"}[result.state]
    said = f"{mark} {result.name}" + (f" [{result.evidence_id}]" if result.evidence_id else "")
    return f"{said}: {result.detail}" if result.detail and result.state != "passed" else said


def _listed(lines: tuple[str, ...] | list[str]) -> str:
    return "\n".join(f"  • {cut(' '.join(line.split()), _REPORT_LINE)}" for line in lines[:_REPORT_LINES])
