"""apply(state, event) -> state: the only writer of state. Pure, so resuming is loading and applying."""

from typing import assert_never

from duckflow.domain.decision import StateDelta
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ApprovalRequested,
    DecisionMade,
    ErrorReported,
    Event,
    Recorded,
    Reply,
    RequestFinished,
    SessionStarted,
    Transition,
    TransitionRefused,
    UsageReported,
    UserMessage,
)
from duckflow.domain.state import AgentState, Entry, Items, Request, RequestOutcome, Running, TierUsage
from duckflow.domain.text import cut
from duckflow.domain.transitions import Status

TRANSCRIPT_LIMIT = 400_000
"""Characters of conversation kept in state; past it, the older half goes (the event log keeps all)."""

LONG, SHORT = 200, 100
COUNTS = {"constraints": 2, "plan_brief": 3, "open_questions": 2, "context_refs": 100, "decision_log": 100}


STATUS_AFTER: dict[RequestOutcome, Status] = {
    "done": Status.SUCCESS,
    "pending_user": Status.REQUIRES_USER_INPUT,
    "deferred": Status.IN_PROGRESS,
    "awaiting_approval": Status.REQUIRES_USER_INPUT,
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
            return state.model_copy(update={"step": event.end})
        case TransitionRefused():
            note = f"The step stays {event.start}: {event.reason}"
            return _remember(state, Entry(role="user", text=note))
        case ActionStarted():
            return state.model_copy(
                update={
                    "running": Running(action_id=event.action_id, action=event.action),
                    "queue": state.queue[1:],
                    "approved": None,
                }
            )
        case ActionFinished():
            return _action_finished(state, event)
        case ApprovalRequested():
            items = state.items.model_copy(update={"pending_gate": True})
            return state.model_copy(
                update={"approval": event.approval, "items": items, "status": Status.REQUIRES_USER_INPUT}
            )
        case ApprovalAnswered():
            return _approval_answered(state, event)
        case UsageReported():
            return _usage(state, event)
        case RequestFinished():
            return _request_finished(state, event)
        case Reply() | ErrorReported():
            return state
        case _:
            assert_never(event)


def _user_message(state: AgentState, event: UserMessage) -> AgentState:
    request = state.request
    if request is None or request.request_id != event.request_id:
        request = Request(request_id=event.request_id, text=event.text)
    else:
        request = request.model_copy(update={"loops": 0, "outcome": None, "profile": None})
    fresh = state.model_copy(
        update={
            "request": request,
            "status": Status.IN_PROGRESS,
            "queue": (),
            "running": None,
            "approval": None,
            "approved": None,
            "items": state.items.model_copy(update={"pending_gate": False}),
            "next_step": "continue",
            "files_note": event.note or state.files_note,
        }
    )
    text = f"{event.text}\n\n{event.note}" if event.note else event.text
    return _remember(fresh, Entry(role="user", text=text))


def _decision(state: AgentState, event: DecisionMade) -> AgentState:
    said = tuple(
        Entry(role="assistant" if message.role == "assistant" else "user", text=message.text)
        for message in event.exchange
    )
    request = state.request
    if request is not None:
        profile = event.decision.task_profile or request.profile
        request = request.model_copy(update={"loops": event.loop, "profile": profile})
    decided = state.model_copy(
        update={
            "request": request,
            "status": Status.IN_PROGRESS,
            "queue": event.decision.actions,
            "next_step": event.decision.next_step,
            "objection": event.decision.objection,
            "items": set_items(state.items, event.decision.state_delta),
        }
    )
    return _remember(decided, *said)


def _action_finished(state: AgentState, event: ActionFinished) -> AgentState:
    request = state.request
    if request is not None and event.changed:
        known = tuple(path for path in request.changed if path not in event.changed)
        request = request.model_copy(update={"changed": known + event.changed})
    went_well = event.outcome == "ok"
    done = state.model_copy(
        update={
            "request": request,
            "status": Status.SUCCESS if went_well else Status.ERROR,
            "queue": state.queue if went_well else (),
            "next_step": state.next_step if went_well else "continue",
            "running": None,
            "evidence_count": state.evidence_count + 1,
        }
    )
    lines = [f"[{event.evidence_id}] {event.operation}: {event.outcome}", event.text]
    if event.not_run:
        lines.append("Not run: " + ", ".join(event.not_run))
    entry = Entry(
        role="user",
        text="\n".join(lines),
        evidence_id=event.evidence_id,
        operation=event.operation,
        path=event.path,
    )
    return _remember(done, entry)


def _approval_answered(state: AgentState, event: ApprovalAnswered) -> AgentState:
    if state.approval is None or state.approval.approval_id != event.approval_id:
        return state
    items = state.items.model_copy(update={"pending_gate": False})
    approved = state.approval.digest if event.yes else None
    return state.model_copy(update={"approval": None, "items": items, "approved": approved})


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
        ended = {"request": None, "queue": (), "running": None, "approved": None}
        return state.model_copy(update={**ended, "status": STATUS_AFTER["done"]})
    open_still = request.model_copy(update={"outcome": event.outcome})
    return state.model_copy(update={"request": open_still, "status": STATUS_AFTER[event.outcome]})


def _remember(state: AgentState, *entries: Entry) -> AgentState:
    transcript = state.transcript + entries
    size = state.transcript_chars + sum(len(entry.text) for entry in entries)
    if size > TRANSCRIPT_LIMIT:
        transcript, size = _newest(transcript, TRANSCRIPT_LIMIT // 2)
    return state.model_copy(update={"transcript": transcript, "transcript_chars": size})


def _newest(transcript: tuple[Entry, ...], limit: int) -> tuple[tuple[Entry, ...], int]:
    """The newest entries within `limit`, and at least the last one."""
    size, start = 0, len(transcript)
    while start > 0 and (start == len(transcript) or size + len(transcript[start - 1].text) <= limit):
        start -= 1
        size += len(transcript[start].text)
    return transcript[start:], size


def set_items(items: Items, delta: StateDelta) -> Items:
    """The items with what `delta` sets, each cut to its length and count (SPEC E1, E2)."""
    changes: dict[str, object] = {}
    for name, value in delta.model_dump(exclude_none=True).items():
        if isinstance(value, str):
            changes[name] = cut(value, LONG)
        else:
            changes[name] = tuple(cut(text, SHORT) for text in value)[: COUNTS[name]]
    return items.model_copy(update=changes) if changes else items
