"""How an objective goes on: what was tried and seen, a verdict, a new strategy, a word from the user."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from typing import Literal

from duckflow.domain.decision import Action
from duckflow.domain.objective import (
    AttemptResult,
    ExecutionPlan,
    RequirementItem,
    SatisfactionEvaluation,
    TaskObjective,
    TriedList,
)
from duckflow.domain.text import cut, head_and_tail

Outcome = Literal["ok", "failed", "refused", "unknown"]

MOST_ATTEMPTS = 10
"""Attempts kept; the user may ask for more of them for ever."""

MOST_LISTS, MOST_LINES = 50, 20
_LINE = 200
_REQUEST = 4_000


def digest_of(actions: Iterable[Action]) -> str:
    """What makes two lists of actions the same: operations and arguments, not the reasons given."""
    calls = [[action.operation, action.args] for action in actions]
    return hashlib.sha256(json.dumps(calls, sort_keys=True).encode()).hexdigest()


def note_list(objective: TaskObjective, actions: Sequence[Action]) -> TaskObjective:
    """The objective with a list of actions that a decision wants run."""
    if not actions:
        return objective
    tried = TriedList(digest=digest_of(actions), revision=objective.revision)
    return _with_current(objective, tried=(*objective.current.tried, tried)[-MOST_LISTS:])


def note_result(
    objective: TaskObjective, line: str, outcome: Outcome, *, changed: bool = False, background: bool = False
) -> TaskObjective:
    """The objective with what an action brought, in a line that begins with its evidence id."""
    kept = {"ok": "results", "refused": "refused"}.get(outcome, "errors")
    lines: tuple[str, ...] = getattr(objective.current, kept)
    noted = _with_current(objective, **{kept: (*lines, _line(line))[-MOST_LINES:]})
    if not changed:
        return noted
    revision = objective.revision + 1
    tried = objective.current.tried
    if tried and not background:
        own = tried[-1].model_copy(update={"changed": True, "revision": revision})
        noted = _with_current(noted, tried=(*tried[:-1], own))
    return noted.model_copy(update={"revision": revision})


def set_requirements(objective: TaskObjective, requirements: Iterable[RequirementItem]) -> TaskObjective:
    """The objective with what the request wants, in parts."""
    return objective.model_copy(update={"requirements": tuple(requirements)})


def put_first(objective: TaskObjective, requirement: str) -> TaskObjective:
    """The objective with one requirement that counts most; all others can wait."""
    first = RequirementItem(requirement=_line(requirement), priority=1)
    others = tuple(
        one.model_copy(update={"priority": 3})
        for one in objective.requirements
        if one.requirement != first.requirement
    )
    return set_requirements(objective, (first, *others))


def begin_attempt(objective: TaskObjective, plan: ExecutionPlan) -> TaskObjective:
    """The objective with the strategy of the attempt that begins, and what holds for it from now on."""
    noted = _with_current(objective, strategy=_line(plan.strategy), plan=_lines(plan.steps)[:MOST_LINES])
    return learn(noted, plan.constraints)


def end_attempt(objective: TaskObjective, evaluation: SatisfactionEvaluation) -> TaskObjective:
    """The objective after a verdict: the attempt is over, and one more evaluation is spent."""
    ended = objective.current.model_copy(
        update={
            "score": evaluation.overall_score,
            "done": evaluation.done,
            "lessons": _lines(evaluation.missing_aspects)[:MOST_LINES],
        }
    )
    return objective.model_copy(
        update={
            "requirements": _scored(objective.requirements, evaluation),
            "iterations": objective.iterations + 1,
            "attempts": (*objective.attempts, ended)[-MOST_ATTEMPTS:],
            "current": AttemptResult(number=ended.number + 1),
            "evaluation": evaluation,
        }
    )


def give_up_attempt(objective: TaskObjective, *, forbidden: bool) -> TaskObjective:
    """The objective with the attempt under way left behind; `forbidden` keeps it from being tried again."""
    left = objective.current
    ended = (left.model_copy(update={"score": objective.satisfaction}),) if forbidden and left.tried else ()
    return objective.model_copy(
        update={
            "attempts": (*objective.attempts, *ended)[-MOST_ATTEMPTS:],
            "current": AttemptResult(number=left.number + len(ended)),
        }
    )


def learn(objective: TaskObjective, constraints: Iterable[str]) -> TaskObjective:
    """The objective with what was learned to hold."""
    known = dict.fromkeys((*objective.learned_constraints, *_lines(constraints)))
    return objective.model_copy(update={"learned_constraints": tuple(known)[-MOST_LINES:]})


def renew(objective: TaskObjective, said: str = "") -> TaskObjective:
    """The objective after the user has spoken: evaluations count anew (SPEC J6), and `said` belongs to it.

    Much may have changed outside meanwhile, so what only looked, or ran and changed nothing, may be repeated.
    """
    request = objective.request
    if said.strip():
        request = head_and_tail(f"{request}\n\n{said.strip()}", _REQUEST)
    return objective.model_copy(
        update={"request": request, "iterations": 0, "revision": objective.revision + 1}
    )


def _scored(
    requirements: tuple[RequirementItem, ...], evaluation: SatisfactionEvaluation
) -> tuple[RequirementItem, ...]:
    scores = {one.requirement: one for one in evaluation.requirement_scores}
    return tuple(
        item.model_copy(update={"satisfaction": found.score, "evidence": found.evidence})
        if (found := scores.get(item.requirement))
        else item
        for item in requirements
    )


def _with_current(objective: TaskObjective, **changes: object) -> TaskObjective:
    return objective.model_copy(update={"current": objective.current.model_copy(update=changes)})


def _lines(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(_line(text) for text in texts if text.strip())


def _line(text: str) -> str:
    return cut(" ".join(text.split()), _LINE)
