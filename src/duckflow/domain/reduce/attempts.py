"""Updates an objective (request and progress): attempts, results, verdicts, strategies, messages."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionOutcome
from duckflow.domain.frozen import replace
from duckflow.domain.text import head_and_tail, one_line
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    AttemptResult,
    ExecutionPlan,
    RequirementItem,
    SatisfactionEvaluation,
    TaskObjective,
    TriedList,
)

MOST_ATTEMPTS = 10
"""Number of attempts to keep. There may be more, because the user can always ask for another one."""

MOST_LISTS, MOST_LINES = 50, 20
_LINE = 200
_REQUEST = 200_000


def digest_of(actions: Iterable[Action]) -> str:
    """Return a hash of the operations and arguments of these actions. Their stated reasons do not count."""
    calls = [[action.operation, action.args] for action in actions]
    return hashlib.sha256(json.dumps(calls, sort_keys=True).encode()).hexdigest()


def note_list(objective: TaskObjective, actions: Sequence[Action]) -> TaskObjective:
    """Record the actions that a decision wants to run."""
    if not actions:
        return objective
    tried = TriedList(digest=digest_of(actions), revision=objective.revision)
    lists = (*objective.current.tried, tried)[-MOST_LISTS:]
    return replace(objective, current=replace(objective.current, tried=lists))


def note_result(
    objective: TaskObjective,
    line: str,
    outcome: ActionOutcome,
    *,
    changed: bool = False,
    background: bool = False,
) -> TaskObjective:
    """Record the result of an action as a line that begins with its evidence id."""
    current = _with_line(objective.current, _line(line), outcome)
    if not changed:
        return replace(objective, current=current)
    revision, tried = objective.revision + 1, current.tried
    if tried and not background:
        own = replace(tried[-1], changed=True, revision=revision)
        current = replace(current, tried=(*tried[:-1], own))
    return replace(objective, current=current, revision=revision)


def put_first(objective: TaskObjective, requirement: str) -> TaskObjective:
    """Make this requirement the first one, and give all others the lowest priority."""
    first = RequirementItem(requirement=_line(requirement), priority=1)
    others = tuple(
        replace(one, priority=3) for one in objective.requirements if one.requirement != first.requirement
    )
    return replace(objective, requirements=(first, *others))


def begin_attempt(objective: TaskObjective, plan: ExecutionPlan) -> TaskObjective:
    """Record the strategy and steps of a new attempt, and the constraints that its plan adds."""
    steps = _lines(plan.steps)[:MOST_LINES]
    current = replace(objective.current, strategy=_line(plan.strategy), plan=steps)
    return learn(replace(objective, current=current), plan.constraints)


def end_attempt(
    objective: TaskObjective, evaluation: SatisfactionEvaluation, checks: tuple[CheckResult, ...] = ()
) -> TaskObjective:
    """End the attempt after a verdict, and count the evaluation."""
    ended = replace(
        objective.current,
        score=evaluation.overall_score,
        done=evaluation.done,
        lessons=_lines(evaluation.missing_aspects)[:MOST_LINES],
    )
    return replace(
        objective,
        requirements=_scored(objective.requirements, evaluation),
        iterations=objective.iterations + 1,
        attempts=(*objective.attempts, ended)[-MOST_ATTEMPTS:],
        current=AttemptResult(number=ended.number + 1),
        evaluation=evaluation,
        checks=checks,
    )


def give_up_attempt(objective: TaskObjective, *, forbidden: bool) -> TaskObjective:
    """End the current attempt without a verdict. If `forbidden`, its actions may not be repeated."""
    left = objective.current
    ended = (replace(left, score=objective.satisfaction),) if forbidden and left.tried else ()
    return replace(
        objective,
        attempts=(*objective.attempts, *ended)[-MOST_ATTEMPTS:],
        current=AttemptResult(number=left.number + len(ended)),
    )


def learn(objective: TaskObjective, constraints: Iterable[str]) -> TaskObjective:
    """Add learned constraints."""
    known = dict.fromkeys((*objective.learned_constraints, *_lines(constraints)))
    return replace(objective, learned_constraints=tuple(known)[-MOST_LINES:])


def renew(objective: TaskObjective, said: str = "") -> TaskObjective:
    """Add the user's message to the request, and count evaluations from 0 again (J6).

    The user may have changed files meanwhile, so actions that changed no file may be repeated.
    """
    request = objective.request
    if said.strip():
        request = head_and_tail(f"{request}\n\n{said.strip()}", _REQUEST)
    return replace(objective, request=request, iterations=0, revision=objective.revision + 1)


def _scored(
    requirements: tuple[RequirementItem, ...], evaluation: SatisfactionEvaluation
) -> tuple[RequirementItem, ...]:
    scores = {one.requirement: one for one in evaluation.requirement_scores}
    return tuple(
        replace(item, satisfaction=found.score, evidence=found.evidence)
        if (found := scores.get(item.requirement))
        else item
        for item in requirements
    )


def _with_line(attempt: AttemptResult, line: str, outcome: ActionOutcome) -> AttemptResult:
    match outcome:
        case "ok":
            return replace(attempt, results=(*attempt.results, line)[-MOST_LINES:])
        case "refused":
            return replace(attempt, refused=(*attempt.refused, line)[-MOST_LINES:])
        case "failed" | "unknown":
            return replace(attempt, errors=(*attempt.errors, line)[-MOST_LINES:])


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_line(text) for text in texts if text.strip())


def _line(text: str) -> str:
    return one_line(text, _LINE)
