"""Applies events of self-assessment: limits, vitals, requirements, verdicts, and the user's answers."""

from duckflow.domain.events import (
    ActionFinished,
    AttemptPlanned,
    ConsultationAnswered,
    Evaluated,
    LimitSet,
    RequirementsFound,
    VitalsChanged,
)
from duckflow.domain.frozen import replace
from duckflow.domain.pacing.limits import TRACES_KEPT
from duckflow.domain.questions.consultation import ChoiceEffect, effect_of
from duckflow.domain.reduce.attempts import (
    begin_attempt,
    end_attempt,
    give_up_attempt,
    learn,
    note_result,
    put_first,
    renew,
)
from duckflow.domain.reduce.transcript import remember, tell
from duckflow.domain.state import AgentState, CommandRun, Request, TranscriptEntry
from duckflow.domain.transitions import Status
from duckflow.domain.work.objective import TaskObjective

VITALS_KEPT = 60
"""Number of vitals to keep in state for the chart. The event log keeps all."""

COMMANDS_KEPT = 20

NO_END = -1
"""Exit code recorded for a command that did not finish."""

REPLAN = (
    "You are going in circles or losing the thread. Make a new plan: a simpler, more direct way to the goal, "
    "with another first step than those so far."
)
"""Message for the model when the program sends it back to planning (H5)."""


def set_limit(state: AgentState, event: LimitSet) -> AgentState:
    """Set the loop limit of the request."""
    if state.request is None:
        return state
    limited = replace(state.request, limit=event.limit, extended_from=event.extended_from)
    return replace(state, request=limited)


def change_vitals(state: AgentState, event: VitalsChanged) -> AgentState:
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


def find_requirements(state: AgentState, event: RequirementsFound) -> AgentState:
    """Set the requirements. The kind of task applies if the model has named none."""
    request = state.request
    if request is None:
        return state
    objective = replace(request.objective, requirements=event.requirements)
    profile = request.profile or event.profile
    found = replace(state, request=replace(request, objective=objective, profile=profile))
    return tell(found, event.told) if event.told else found


def take_verdict(state: AgentState, event: Evaluated) -> AgentState:
    """Record an evaluation. Its checks get the next evidence ids."""
    request = state.request
    if request is not None:
        ended = end_attempt(request.objective, event.evaluation, event.results)
        request = replace(request, objective=ended)
    return replace(state, request=request, evidence_count=state.evidence_count + len(event.checks))


def plan_attempt(state: AgentState, event: AttemptPlanned) -> AgentState:
    """Start the next attempt with its plan, tell the model, and continue the work."""
    request = state.request
    if request is None:
        return state
    planned = begin_attempt(learn(request.objective, event.learned), event.plan)
    return tell(replace(state, request=replace(request, objective=planned, outcome=None)), event.told)


def note_action(request: Request, event: ActionFinished, command: str, *, changed: bool) -> Request:
    """Record an action's result and its command. `changed` is True if the action changed files."""
    if command and event.outcome != "refused":
        ran = CommandRun(
            command=command,
            exit_code=NO_END if event.exit_code is None else event.exit_code,
            evidence_id=event.evidence_id,
            revision=request.objective.revision + changed,
        )
        request = replace(request, ran=True, commands=(*request.commands, ran)[-COMMANDS_KEPT:])
    line = f"{event.evidence_id} {event.operation} {event.path or command}: {event.text}"
    background = event.task_id is not None
    noted = note_result(request.objective, line, event.outcome, changed=changed, background=background)
    return replace(request, objective=noted)


def answer_consultation(state: AgentState, event: ConsultationAnswered) -> AgentState:
    """Apply the user's answer to a consultation: limits count from 0 again, and the choice takes effect."""
    consultation, request = state.consultation, state.request
    if consultation is None or consultation.consultation_id != event.consultation_id:
        return state
    effect = effect_of(event.answer.choice)
    answered = replace(state, consultation=None, status=Status.IN_PROGRESS, queue=(), next_step="continue")
    if effect.rules:
        answered = replace(answered, rules_use=effect.rules)
    if effect.clears:
        answered = _without_approach(answered)
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
        return put_first(renewed, said)
    return replace(renewed, requirements=()) if effect.restarts or effect.redraws else renewed


def _without_approach(state: AgentState) -> AgentState:
    items = replace(state.items, plan_brief=(), open_questions=(), last_delta="")
    return replace(state, items=items, active_plan_id=None, pattern="base_main", queue=())
