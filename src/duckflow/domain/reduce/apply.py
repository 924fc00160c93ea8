"""apply(state, event) -> state: the only way to change state. Pure: resuming a session applies its events."""

from typing import assert_never

from duckflow.domain import events
from duckflow.domain.decision import Decision
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.actions import finish_action, queue_actions, start_action
from duckflow.domain.reduce.agents import end_agent, move_agent, start_agent
from duckflow.domain.reduce.approvals import answer_approval
from duckflow.domain.reduce.changes import end_command, note_recovery, take_back
from duckflow.domain.reduce.items import check_items, set_items
from duckflow.domain.reduce.objective import (
    answer_consultation,
    change_vitals,
    find_requirements,
    note_list,
    plan_attempt,
    renew,
    set_limit,
    take_verdict,
)
from duckflow.domain.reduce.plans import change_plan, end_tasks, set_task, start_tasks
from duckflow.domain.reduce.transcript import remember, tell
from duckflow.domain.state import AgentState, Request, TierUsage, TranscriptEntry
from duckflow.domain.text import count_questions, cut, head_and_tail, one_line
from duckflow.domain.transitions import Status
from duckflow.domain.work.memory import recalled_text
from duckflow.domain.work.outcomes import ENDED, RequestOutcome

SUMMARIES, SUMMARY = 5, 100
"""Number of earlier requests to summarize in one line each, and the largest length of such a line."""

ONE_QUESTION = "You asked several questions at once. Ask one at most, the one whose answer decides most."
"""Message for the model after it asked more than one question (F6)."""

DOUBT = (
    "You had a doubt: {doubt}. So nothing that changes anything has run. Is the doubt right? Then find "
    "another way. If not, decide the same again without it. If only the user can tell, repeat it, and the "
    "user is asked."
)
"""Message for the model after a decision that doubted itself (A5)."""

SAID, SAID_LINE = 20, 150
DECIDED, DECIDED_LINE = 60, 100
"""Number of messages and decisions to keep after the transcript drops them, and characters of each."""

REPLY_KEPT, REPLIES_KEPT = 12_000, 10

QUESTION = 300
"""Characters of the model's question, from its end, to keep with the user's answer."""

ASKED_KEPT = 20

PRAISE_FROM = 8
"""Ratings from this value on, out of 10, count as praise."""

SURE_FROM = 0.7
"""Confidence from which on a model counts as sure of itself."""

STATUS_AFTER: dict[RequestOutcome, Status] = {
    "done": Status.SUCCESS,
    "accepted": Status.SUCCESS,
    "not_judged": Status.SUCCESS,
    "pending_user": Status.REQUIRES_USER_INPUT,
    "deferred": Status.IN_PROGRESS,
    "awaiting_approval": Status.REQUIRES_USER_INPUT,
    "consultation": Status.REQUIRES_USER_INPUT,
    "not_satisfied": Status.REQUIRES_USER_INPUT,
    "stopped": Status.SUCCESS,
    "provider_error": Status.ERROR,
    "interrupted": Status.REQUIRES_USER_INPUT,
}


def apply(state: AgentState, recorded: StoredEvent) -> AgentState:
    """Return the state after this event."""
    return replace(_apply(state, recorded.event), seq=recorded.seq)


def _apply(state: AgentState, event: Event) -> AgentState:
    match event:
        case events.SessionStarted():
            return _session_started(state, event)
        case events.UserMessage():
            return _user_message(state, event)
        case events.DecisionMade():
            return _decision(state, event)
        case events.Transition():
            return _transition(state, event)
        case events.TransitionRefused():
            return tell(state, f"The step stays {event.start}: {event.reason}")
        case events.ActionStarted():
            return start_action(state, event)
        case events.ActionFinished():
            return finish_action(state, event)
        case events.ApprovalRequested():
            aside = state.set_aside if event.approval.task_id else ()
            asked = replace(state, approval=event.approval, set_aside=aside)
            return replace(asked, status=Status.REQUIRES_USER_INPUT)
        case events.ApprovalAnswered():
            return answer_approval(state, event)
        case events.ConsultationRequested():
            return _consultation_requested(state, event)
        case events.ConsultationAnswered():
            return answer_consultation(state, event)
        case events.LimitSet():
            return set_limit(state, event)
        case events.VitalsChanged():
            return change_vitals(state, event)
        case events.RequirementsFound():
            return find_requirements(state, event)
        case events.Evaluated():
            return take_verdict(state, event)
        case events.AttemptPlanned():
            return plan_attempt(state, event)
        case events.VerifySet():
            return replace(state, verify=event.command)
        case events.RequestRated():
            return replace(state, praised=event.rating >= PRAISE_FROM)
        case events.ActionQueued():
            return queue_actions(state, event)
        case events.CommandStarted():
            return replace(state, background_commands=(*state.background_commands, event.command))
        case events.CommandEnded():
            return end_command(state, event)
        case events.Undone():
            return take_back(state, event)
        case events.Recovered():
            return note_recovery(state, event)
        case events.PlanChanged():
            return change_plan(state, event)
        case events.TaskListStarted():
            return start_tasks(state, event)
        case events.TaskFinished():
            return set_task(state, event.task_id, event.status, event.result)
        case events.TaskReported():
            return end_tasks(state, event)
        case events.UsageReported():
            return _usage(state, event)
        case events.RequestFinished():
            return _request_finished(state, event)
        case events.Reply():
            replied = _replied(state, head_and_tail(event.text, REPLY_KEPT))
            if event.text != state.closing:
                return replied
            # The conversation ends with the model's words, as it does after a reply without tool calls.
            return remember(replace(replied, closing=""), TranscriptEntry(role="assistant", text=event.text))
        case events.ModeChanged():
            return replace(state, mode=event.mode)
        case events.Compacted():
            return replace(state, compactions=state.compactions + 1)
        case events.PermissionChanged():
            # A permission that is kept lies in the user's folder, where any session can revoke it.
            return replace(state, allowed=tuple(one for one in state.allowed if one != event.kind))
        case events.MemoryRecalled():
            return tell(state, recalled_text(event.texts))
        case events.HookRan():
            return tell(state, event.told) if event.told else state
        case events.AgentStarted():
            return start_agent(state, event)
        case events.AgentMoved():
            return move_agent(state, event)
        case events.AgentEnded():
            return end_agent(state, event.agent_id)
        case events.ReviewFinished():
            return replace(state, review=event.report)
        case events.ModelChanged():
            return replace(state, model=event.model)
        case events.EffortChanged():
            return replace(state, effort=event.effort, effort_chosen=True)
        case events.ErrorReported() | events.SessionTitled() | events.MemoryKept() | events.HostContacted():
            return state
        case events.Rewound():
            return state  # rewound events are filtered out before this
        case _:
            assert_never(event)


def _session_started(state: AgentState, event: events.SessionStarted) -> AgentState:
    return replace(
        state,
        session_id=event.session_id,
        workspace=event.workspace,
        model=event.model,
        mode=event.mode,
        attended=event.attended,
        effort=event.effort,
        allowed=(),
        agents=(),
    )


def _transition(state: AgentState, event: events.Transition) -> AgentState:
    request = state.request
    if event.recovery and request is not None:
        request = replace(request, recoveries=request.recoveries + 1)
    return replace(state, step=event.end, request=request)


def _with_question(state: AgentState, said: str) -> str:
    """Return the user's words with the question that they answer: alone they may mean anything."""
    asked = " ".join(state.reply.split())[-QUESTION:] if state.next_step == "pending_user" else ""
    return f"“{asked}” → {said}" if asked else said


_STOPPED = (
    "The user stopped the work here, and what was not finished is dropped. Answer what they say next. "
    "Go on with the work only if they want that."
)


def _user_message(state: AgentState, event: events.UserMessage) -> AgentState:
    request, set_aside = state.request, state.set_aside
    added = request is not None and request.request_id == event.request_id
    if request is not None and added and request.outcome == "interrupted" and not event.resumes:
        state = tell(state, _STOPPED)
    if request is None or not added:
        request, set_aside = Request(request_id=event.request_id, text=event.text), ()
        if state.active_plan is not None and state.active_plan.status == "completed":
            state = replace(state, active_plan_id=None)
    else:
        if state.approval is not None and state.approval.task_id is None:
            # The model gets the result as text: its call has been answered with a note by then.
            set_aside = tuple(replace(one, call_id="") for one in state.queue)
        objective = renew(request.objective, "" if event.resumes else _with_question(state, event.text))
        stopped = objective.stopped or request.outcome == "interrupted"
        objective = replace(objective, stopped=stopped and not event.resumes)
        goal = state.items.goal if request.history else ""
        request = replace(
            request,
            loops=0,
            progressed=0,
            outcome=None,
            profile=None,
            replanned=False,
            goal=goal,
            objective=objective,
        )
    # A question of a background task stays open, because this message does not answer it.
    approval = state.approval if state.approval and state.approval.task_id else None
    fresh = replace(
        state,
        request=request,
        status=Status.IN_PROGRESS,
        queue=(),
        set_aside=set_aside,
        running=None,
        approval=approval,
        approved=None,
        refused=state.refused if added else (),
        refused_earlier=added and bool(state.refused) and (state.refused_earlier or not event.resumes),
        reminded=False,
        asks_instead=False,
        unseen=(),
        consultation=None,
        next_step="continue",
        files_note=event.note or state.files_note,
        said=(*state.said, one_line(event.text, SAID_LINE))[-SAID:],
    )
    text = "\n\n".join(part for part in (event.text, event.note, event.added) if part)
    return remember(fresh, TranscriptEntry(role="user", text=text, said=True, pictures=event.pictures))


def _replied(state: AgentState, text: str) -> AgentState:
    request = state.request
    if request is not None and not state.queue:
        request = replace(request, replies=(*request.replies, text)[-REPLIES_KEPT:])
    return replace(state, reply=text, request=request)


def _decision(state: AgentState, event: events.DecisionMade) -> AgentState:
    decision = event.decision
    request = state.request
    if request is not None:
        profile = decision.task_profile or request.profile
        objective = note_list(request.objective, decision.actions)
        sure = decision.confidence is None or decision.confidence >= SURE_FROM
        request = replace(request, loops=event.loop, profile=profile, objective=objective, sure=sure)
    items, notes = set_items(state.items, decision.state_delta)
    words = one_line(decision.reply, DECIDED_LINE)
    decided = replace(
        state,
        request=request,
        status=Status.IN_PROGRESS,
        queue=tuple(
            replace(one, reasoning=words if one.reasoning is None else one.reasoning)
            for place, one in enumerate(decision.actions)
            if place not in event.held
        ),
        next_step="continue" if event.held else decision.next_step,
        closing=event.closing,
        objection=decision.objection if state.attended else None,
        doubted=bool(event.held),
        list_granted=False,
        pattern=decision.prompt_pattern or state.pattern,
        items=check_items(items, decision),
        decided=_decided(state.decided, decision),
    )
    said = tuple(TranscriptEntry(**dict(message)) for message in event.exchange)
    if decision.next_step == "pending_user" and count_questions(decision.reply) > 1:
        notes = (*notes, ONE_QUESTION)
    if event.held:
        notes = (*notes, DOUBT.format(doubt=decision.objection))
    return tell(remember(decided, *said), *notes)


def _decided(earlier: tuple[str, ...], decision: Decision) -> tuple[str, ...]:
    """Add a decision's reason. If there are too many, drop every other one of the older half."""
    why = one_line(decision.rationale or decision.reply, DECIDED_LINE)
    if not why:
        return earlier
    half = DECIDED // 2
    kept = earlier if len(earlier) < DECIDED else (*earlier[:half:2], *earlier[half:])
    return (*(line for line in kept if line != why), why)


def _consultation_requested(state: AgentState, event: events.ConsultationRequested) -> AgentState:
    request = state.request
    again = state.consultation is not None
    if request is not None and not again and event.kind != "instead":
        request = replace(request, asked=(*request.asked, event.kind)[-ASKED_KEPT:])
    waiting = Status.REQUIRES_USER_INPUT
    return replace(state, consultation=event.consultation, status=waiting, request=request)


def _usage(state: AgentState, event: events.UsageReported) -> AgentState:
    def with_this(cost: float | None) -> float | None:
        return cost if event.cost_usd is None else (cost or 0.0) + event.cost_usd

    before, tokens, request = state.usage.get(event.tier, TierUsage()), event.tokens, state.request
    after = TierUsage(
        calls=before.calls + 1, tokens=before.tokens + tokens, cost_usd=with_this(before.cost_usd)
    )
    if request is not None:
        used = request.tokens + tokens.input_tokens + tokens.output_tokens
        request = replace(request, tokens=used, cost_usd=with_this(request.cost_usd))
    return replace(state, usage={**state.usage, event.tier: after}, request=request)


def _request_finished(state: AgentState, event: events.RequestFinished) -> AgentState:
    request = state.request
    if request is None or request.request_id != event.request_id:
        return state
    stops = request.stops + (event.outcome == "interrupted")
    request = replace(request, outcome=event.outcome, stops=stops)
    state = replace(state, request=request, status=STATUS_AFTER[event.outcome])
    if event.outcome not in ENDED:
        return state
    line = cut(f"{cut(request.text, SUMMARY // 2)} → {one_line(state.reply, SUMMARY)}", SUMMARY)
    return replace(
        state,
        request=None,
        finished=replace(request, history=()),
        praised=False,
        queue=state.queue[:1] if state.approval and not state.approval.task_id else (),
        running=None,
        approved=None,
        summaries=(*state.summaries, line)[-SUMMARIES:],
    )
