"""Applies events of self-assessment: limits, vitals, requirements, attempts, verdicts, the user's answers."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.frozen import replace
from duckflow.domain.pacing.limits import TRACES_KEPT
from duckflow.domain.questions.consultation import ChoiceEffect, effect_of
from duckflow.domain.reduce.transcript import remember, tell
from duckflow.domain.state import AgentState, CommandRun, Request, TranscriptEntry
from duckflow.domain.text import head_and_tail, one_line
from duckflow.domain.transitions import Status
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import (
    AttemptResult,
    ExecutionPlan,
    RequirementItem,
    SatisfactionEvaluation,
    TaskObjective,
    TriedList,
)

VITALS_KEPT = 60
"""Number of vitals to keep in state for the chart. The event log keeps all."""

COMMANDS_KEPT = 20

NO_END = -1
"""Exit code recorded for a command that did not finish."""

MOST_ATTEMPTS = 10
"""Number of attempts to keep. There may be more, because the user can always ask for another one."""

MOST_LISTS, MOST_LINES = 50, 20
_LINE = 200
_REQUEST = 200_000

REPLAN = (
    "You are going in circles or losing the thread. Make a new plan: a simpler, more direct way to the goal, "
    "with another first step than those so far."
)
"""Message for the model when the program sends it back to planning (H5)."""


def set_limit(state: AgentState, event: events.LimitSet) -> AgentState:
    """Set the loop limit of the request."""
    if state.request is None:
        return state
    limited = replace(state.request, limit=event.limit, extended_from=event.extended_from)
    return replace(state, request=limited)


def change_vitals(state: AgentState, event: events.VitalsChanged) -> AgentState:
    """Set the vitals and append the loop's trace."""
    request, replanned = state.request, event.cause == "replan"
    if request is not None:
        traces = (event.trace,) if event.trace else ()
        history = (*request.history, *traces)[-TRACES_KEPT:]
        request = replace(
            request,
            history=history,
            progressed=request.progressed + sum(trace.progressed for trace in traces),
            replanned=request.replanned or replanned,
        )
    changed = replace(
        state,
        request=request,
        vitals=event.vitals,
        vitals_over_time=(*state.vitals_over_time, event.vitals)[-VITALS_KEPT:],
        confident=event.confident,
        prompt_tokens=event.prompt_tokens,
    )
    return tell(changed, REPLAN) if replanned else changed


def find_requirements(state: AgentState, event: events.RequirementsFound) -> AgentState:
    """Set the requirements. Unless the program knows better, the model's own kind of task stays."""
    request = state.request
    if request is None:
        return state
    if event.replaces:
        said = request.objective.added
        old = request.objective
        fresh = TaskObjective(request=said, revision=old.revision, changed_at=old.changed_at)
        request = replace(
            request,
            text=said,
            objective=fresh,
            changed=(),
            removed=(),
            failing=(),
            commands=(),
            replies=request.replies[-1:],
            ran=False,
            attempted=False,
        )
    known = {one.requirement: one for one in request.objective.requirements}
    kept = tuple(
        replace(
            one, satisfaction=known[one.requirement].satisfaction, evidence=known[one.requirement].evidence
        )
        if one.requirement in known
        else one
        for one in event.requirements
    )
    accepted = event.failures_accepted if event.by == "model" else request.objective.failures_accepted
    objective = replace(
        request.objective, requirements=kept, added="", stopped=False, failures_accepted=accepted
    )
    named = (request.profile, event.profile)
    profile = next(filter(None, reversed(named) if event.by == "program" else named), None)
    found = replace(state, request=replace(request, objective=objective, profile=profile))
    return tell(found, event.told) if event.told else found


def take_verdict(state: AgentState, event: events.Evaluated) -> AgentState:
    """Record an evaluation. Its checks get the next evidence ids."""
    request = state.request
    if request is not None:
        ended = end_attempt(request.objective, event.evaluation, event.results)
        request = replace(request, objective=ended)
    return replace(state, request=request, evidence_count=state.evidence_count + len(event.checks))


def plan_attempt(state: AgentState, event: events.AttemptPlanned) -> AgentState:
    """Start the next attempt with its plan, tell the model, and continue the work."""
    request = state.request
    if request is None:
        return state
    planned = begin_attempt(learn(request.objective, event.learned), event.plan)
    return tell(replace(state, request=replace(request, objective=planned, outcome=None)), event.told)


def note_action(request: Request, event: events.ActionFinished, command: str, *, changed: bool) -> Request:
    """Record an action's result and its command. `changed` is True if the action changed files."""
    if command and event.outcome != "refused":
        ran = CommandRun(
            command=command,
            exit_code=NO_END if event.exit_code is None else event.exit_code,
            evidence_id=event.evidence_id,
            revision=request.objective.revision + changed,
            tests_failed=bool(event.tests_failed),
        )
        request = replace(request, ran=True, commands=(*request.commands, ran)[-COMMANDS_KEPT:])
    line = f"{event.evidence_id} {event.operation} {event.path or command}: {event.text}"
    background = event.task_id is not None
    noted = note_result(request.objective, line, event.outcome, changed=changed, background=background)
    return replace(request, objective=noted)


def note_declined(request: Request, event: events.ActionFinished, target: str) -> Request:
    """Record an action that the user refused. Its loop counts for no limit, and may be tried again."""
    line = _line(f"{event.evidence_id} {event.operation} {target}: {event.text}")
    current = request.objective.current
    unwanted = event.declined not in ("outdated", "later")
    declined = (*current.declined, line)[-MOST_LINES:] if unwanted else current.declined
    noted = replace(current, tried=current.tried[:-1], declined=declined)
    if event.task_id is not None:
        noted = replace(noted, tried=current.tried)
    loops = request.loops if event.task_id is not None else max(request.loops - 1, 0)
    return replace(request, loops=loops, objective=replace(request.objective, current=noted))


def answer_consultation(state: AgentState, event: events.ConsultationAnswered) -> AgentState:
    """Apply the user's answer to a consultation: limits count from 0 again, and the choice takes effect."""
    consultation, request = state.consultation, state.request
    if consultation is None or consultation.consultation_id != event.consultation_id:
        return state
    effect = effect_of(event.answer.choice)
    answered = replace(state, consultation=None, status=Status.IN_PROGRESS, queue=(), next_step="continue")
    speaks = bool(event.answer.text.strip()) and bool(state.refused)
    answered = replace(answered, asks_instead=False, reminded=False, refused_earlier=speaks)
    if effect.reconsiders:
        answered = replace(answered, refused=())
    if effect.rules:
        answered = replace(answered, rules_use=effect.rules)
    if effect.clears:
        items = replace(answered.items, plan_brief=(), open_questions=(), last_delta="")
        answered = replace(answered, items=items, active_plan_id=None, pattern="base_main")
    if event.told:
        answered = remember(answered, TranscriptEntry(role="user", text=event.told, said=True))
    if request is None:
        return answered
    objective = _redirected(request.objective, effect, event.answer.text)
    renewed = replace(
        request,
        recoveries=0,
        loops=0,
        progressed=0,
        outcome=None,
        profile=None if effect.restarts else request.profile,
        replanned=False,
        grants=request.grants + 1,
        objective=objective,
    )
    return replace(answered, request=renewed)


def _redirected(objective: TaskObjective, effect: ChoiceEffect, said: str) -> TaskObjective:
    if effect.forbids or effect.clears:
        objective = give_up_attempt(objective, forbidden=effect.forbids)
    renewed = renew(objective, said if effect.restarts else "")
    if effect.leads and said.strip() and renewed.requirements:
        first = RequirementItem(requirement=_line(said))
        others = (one for one in renewed.requirements if one.requirement != first.requirement)
        return replace(renewed, requirements=(first, *(replace(one, priority=3) for one in others)))
    return replace(renewed, requirements=()) if effect.restarts or effect.redraws else renewed


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
    outcome: events.ActionOutcome,
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
    return replace(objective, current=current, revision=revision, changed_at=revision)


def begin_attempt(objective: TaskObjective, plan: ExecutionPlan) -> TaskObjective:
    """Record the strategy and steps of a new attempt, and the constraints that its plan adds."""
    steps = _lines(plan.steps)[:MOST_LINES]
    strategy = "" if plan.plain else _line(plan.strategy)
    current = replace(objective.current, strategy=strategy, plan=steps)
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
    given_up = replace(left, score=objective.satisfaction, forbidden=True)
    ended = (given_up,) if forbidden and left.tried else ()
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
    request, added = objective.request, objective.added
    if said.strip():
        request = head_and_tail(f"{request}\n\n{said.strip()}", _REQUEST)
        added = head_and_tail(f"{added}\n\n{said}".strip(), _REQUEST)
    revision = objective.revision + 1
    return replace(objective, request=request, added=added, iterations=0, revision=revision, said_at=revision)


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


def _with_line(attempt: AttemptResult, line: str, outcome: events.ActionOutcome) -> AttemptResult:
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
