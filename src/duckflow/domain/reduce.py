"""apply(state, event) -> state: the only writer of state. Pure, so resuming is loading and applying."""

from typing import assert_never

from duckflow.domain.decision import Decision
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ApprovalRequested,
    ConsultationAnswered,
    ConsultationRequested,
    DecisionMade,
    ErrorReported,
    Event,
    PlanChanged,
    Recorded,
    Reply,
    RequestFinished,
    SessionStarted,
    TaskFinished,
    TaskListStarted,
    TaskReported,
    Transition,
    TransitionRefused,
    UsageReported,
    UserMessage,
)
from duckflow.domain.items import check_items, set_items
from duckflow.domain.state import AgentState, Entry, Request, RequestOutcome, Running, TaskAnswer, TierUsage
from duckflow.domain.text import count_questions, cut
from duckflow.domain.transcript import outdate, remember, tell
from duckflow.domain.transitions import Status
from duckflow.domain.work import begin_task, change_plan, end_tasks, finish_task, start_tasks

SUMMARIES, SUMMARY = 5, 100
"""How many requests are remembered in a line each, and how long such a line is."""

ONE_QUESTION = "You asked several questions at once. Ask one at most, the one whose answer decides most."
"""What the model is told after it broke that rule of the dialog (SPEC F6)."""

STATUS_AFTER: dict[RequestOutcome, Status] = {
    "done": Status.SUCCESS,
    "pending_user": Status.REQUIRES_USER_INPUT,
    "deferred": Status.IN_PROGRESS,
    "awaiting_approval": Status.REQUIRES_USER_INPUT,
    "consultation": Status.REQUIRES_USER_INPUT,
    "limit": Status.REQUIRES_USER_INPUT,
    "provider_error": Status.ERROR,
    "interrupted": Status.REQUIRES_USER_INPUT,
}


def apply(state: AgentState, recorded: Recorded) -> AgentState:
    """The state after this event."""
    return _apply(state, recorded.event).model_copy(update={"seq": recorded.seq})


def _apply(state: AgentState, event: Event) -> AgentState:
    match event:
        case SessionStarted():
            return state.model_copy(
                update={
                    "session_id": event.session_id,
                    "workspace": event.workspace,
                    "model": event.model,
                    "mode": event.mode,
                }
            )
        case UserMessage():
            return _user_message(state, event)
        case DecisionMade():
            return _decision(state, event)
        case Transition():
            return _transition(state, event)
        case TransitionRefused():
            return tell(state, f"The step stays {event.start}: {event.reason}")
        case ActionStarted():
            return _action_started(state, event)
        case ActionFinished():
            return _action_finished(state, event)
        case ApprovalRequested():
            items = state.items.model_copy(update={"pending_gate": True})
            return state.model_copy(
                update={"approval": event.approval, "items": items, "status": Status.REQUIRES_USER_INPUT}
            )
        case ApprovalAnswered():
            return _approval_answered(state, event)
        case ConsultationRequested():
            asked = {"consultation": event.consultation, "status": Status.REQUIRES_USER_INPUT}
            return state.model_copy(update=asked)
        case ConsultationAnswered():
            return _consultation_answered(state, event)
        case PlanChanged():
            return change_plan(state, event)
        case TaskListStarted():
            return start_tasks(state, event)
        case TaskFinished():
            return finish_task(state, event)
        case TaskReported():
            return end_tasks(state, event)
        case UsageReported():
            return _usage(state, event)
        case RequestFinished():
            return _request_finished(state, event)
        case Reply():
            return state.model_copy(update={"last_reply": cut(" ".join(event.text.split()), SUMMARY)})
        case ErrorReported():
            return state
        case _:
            assert_never(event)


def _transition(state: AgentState, event: Transition) -> AgentState:
    request = state.request
    if event.recovery and request is not None:
        request = request.model_copy(update={"recoveries": request.recoveries + 1})
    return state.model_copy(update={"step": event.end, "request": request})


def _user_message(state: AgentState, event: UserMessage) -> AgentState:
    request = state.request
    if request is None or request.request_id != event.request_id:
        request = Request(request_id=event.request_id, text=event.text)
    else:
        request = request.model_copy(update={"loops": 0, "outcome": None, "profile": None})
    # What the background asked stays open: this message does not answer it.
    approval = state.approval if state.approval and state.approval.task_id else None
    fresh = state.model_copy(
        update={
            "request": request,
            "status": Status.IN_PROGRESS,
            "queue": (),
            "running": None,
            "approval": approval,
            "approved": None,
            "consultation": None,
            "items": state.items.model_copy(update={"pending_gate": approval is not None}),
            "next_step": "continue",
            "files_note": event.note or state.files_note,
        }
    )
    text = f"{event.text}\n\n{event.note}" if event.note else event.text
    return remember(fresh, Entry(role="user", text=text, said=True))


def _decision(state: AgentState, event: DecisionMade) -> AgentState:
    decision = event.decision
    request = state.request
    if request is not None:
        profile = decision.task_profile or request.profile
        request = request.model_copy(update={"loops": event.loop, "profile": profile})
    change = set_items(state.items, decision.state_delta)
    decided = state.model_copy(
        update={
            "request": request,
            "status": Status.IN_PROGRESS,
            "queue": decision.actions,
            "next_step": decision.next_step,
            "objection": decision.objection,
            "pattern": decision.prompt_pattern or state.pattern,
            "items": check_items(change.items, decision),
        }
    )
    said = tuple(
        Entry(role="assistant" if message.role == "assistant" else "user", text=message.text)
        for message in event.exchange
    )
    notes = (*change.notes, ONE_QUESTION) if _asks_too_much(decision) else change.notes
    return tell(remember(decided, *said), *notes)


def _asks_too_much(decision: Decision) -> bool:
    return decision.next_step == "pending_user" and count_questions(decision.reply) > 1


def _action_started(state: AgentState, event: ActionStarted) -> AgentState:
    running = Running(action_id=event.action_id, action=event.action, task_id=event.task_id)
    if event.task_id is not None:
        return begin_task(state.model_copy(update={"task_running": running}), event.task_id)
    return state.model_copy(update={"running": running, "queue": state.queue[1:], "approved": None})


def _action_finished(state: AgentState, event: ActionFinished) -> AgentState:
    request = _progress(state.request, event) if state.request else None
    finished = state.model_copy(
        update={"request": request, "evidence_count": state.evidence_count + 1, **_after(state, event)}
    )
    shown = (event.path,) if event.path and event.digest else ()
    current, outdated = outdate(finished, *event.changed, *shown)
    lines = [f"[{event.evidence_id}] {event.operation}: {event.outcome}", event.text]
    if event.not_run:
        lines.append("Not run: " + ", ".join(event.not_run))
    if outdated:
        lines.append(f"Older now, do not rely on it: {', '.join(outdated)}")
    entry = Entry(
        role="user",
        text="\n".join(lines),
        evidence_id=event.evidence_id,
        operation=event.operation,
        path=event.path,
        digest=event.digest,
    )
    return remember(current, entry)


def _progress(request: Request, event: ActionFinished) -> Request:
    """The request with what an action changed, and what it failed on or made good."""
    known = tuple(path for path in request.changed if path not in event.changed)
    target = event.path or event.operation
    failing = tuple(one for one in request.failing if one != target and one not in event.changed)
    if event.outcome != "ok":
        failing = (*failing, target)
    return request.model_copy(
        update={
            "changed": known + event.changed,
            "failing": failing,
            "recoveries": request.recoveries if failing else 0,
        }
    )


def _after(state: AgentState, event: ActionFinished) -> dict[str, object]:
    """What the end of an action means for the loop that ran it."""
    if event.task_id is not None:
        return {"task_running": None}
    if event.outcome == "ok":
        return {"running": None, "status": Status.SUCCESS, "queue": event.then + state.queue}
    return {"running": None, "status": Status.ERROR, "queue": (), "next_step": "continue"}


def _approval_answered(state: AgentState, event: ApprovalAnswered) -> AgentState:
    if state.approval is None or state.approval.approval_id != event.approval_id:
        return state
    items = state.items.model_copy(update={"pending_gate": False})
    digest = state.approval.digest
    answered: dict[str, object] = {"approval": None, "items": items}
    if state.approval.task_id is None:
        answered["approved"] = digest if event.yes else None
    else:
        answered["task_answer"] = TaskAnswer(digest=digest, yes=event.yes, reason=event.reason)
    return state.model_copy(update=answered)


def _consultation_answered(state: AgentState, event: ConsultationAnswered) -> AgentState:
    consultation = state.consultation
    if consultation is None or consultation.consultation_id != event.consultation_id:
        return state
    request = state.request
    if request is not None:
        request = request.model_copy(update={"recoveries": 0, "loops": 0, "outcome": None})
    return state.model_copy(update={"consultation": None, "request": request, "status": Status.IN_PROGRESS})


def _usage(state: AgentState, event: UsageReported) -> AgentState:
    before = state.usage.get(event.tier, TierUsage())
    cost = before.cost_usd
    if event.cost_usd is not None:
        cost = (cost or 0.0) + event.cost_usd
    after = TierUsage(calls=before.calls + 1, tokens=before.tokens + event.tokens, cost_usd=cost)
    return state.model_copy(update={"usage": {**state.usage, event.tier: after}})


def _request_finished(state: AgentState, event: RequestFinished) -> AgentState:
    request = state.request
    if request is None or request.request_id != event.request_id:
        return state
    if event.outcome == "done":
        line = cut(f"{cut(request.text, SUMMARY // 2)} → {state.last_reply}", SUMMARY)
        ended = {
            "request": None,
            "queue": (),
            "running": None,
            "approved": None,
            "summaries": (*state.summaries, line)[-SUMMARIES:],
        }
        return state.model_copy(update={**ended, "status": STATUS_AFTER["done"]})
    open_still = request.model_copy(update={"outcome": event.outcome})
    return state.model_copy(update={"request": open_still, "status": STATUS_AFTER[event.outcome]})
