"""Applies events about approvals: questions, and the answers to them (G1, G5)."""

import json

from duckflow.domain.events import ActionFinished, ApprovalAnswered
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import Approval
from duckflow.domain.reduce.objective import digest_of, renew
from duckflow.domain.reduce.transcript import tell
from duckflow.domain.state import AgentState
from duckflow.domain.text import head_and_tail
from duckflow.domain.transitions import Status

MOST_REFUSED, MOST_UNSEEN = 50, 1000
_TOLD = 4000


def answer_approval(state: AgentState, event: ApprovalAnswered) -> AgentState:
    """Apply the answer. An approved action may run once; a refused action is remembered."""
    approval = state.approval
    if approval is None or approval.approval_id != event.approval_id:
        return state
    digest = approval.digest if event.digest is None else event.digest
    answered = replace(state, approval=None, status=Status.IN_PROGRESS)
    if approval.task_id is not None:
        answered = replace(answered, task_answer=replace(event, digest=digest))
    else:
        request = state.request
        if request is not None and request.outcome == "awaiting_approval":
            request = replace(request, outcome=None)  # a crash from now on is a crash during work
        answered = replace(answered, approved=digest if event.yes else None, request=request)
        if event.edited is not None:
            refused = tuple(one for one in state.refused if one != digest_of((event.edited,)))
            answered = replace(answered, queue=(event.edited, *state.queue[1:]), refused=refused)
    if event.yes:
        kinds = (event.allowed,) if event.allowed and event.allowed not in state.allowed else ()
        answered = replace(answered, allowed=(*state.allowed, *kinds), unseen=(), list_granted=True)
    elif not event.stopped:
        answered = _decline(answered, approval, event.reason)
    if event.edited is None:
        return answered
    call = json.dumps(event.edited.args, ensure_ascii=False)
    told = f"The user changed your action before allowing it. It is now {event.edited.operation} with {call}"
    return tell(answered, head_and_tail(told, _TOLD))


def _decline(state: AgentState, approval: Approval, reason: str) -> AgentState:
    """Remember a refused draft. The reason extends the request; without one, the user is asked for it."""
    drafts = approval.drafts or (digest_of((approval.action,)),)
    request, bare = state.request, not reason.strip()
    if request is not None and not bare:
        objective = replace(renew(request.objective, reason), requirements=())
        request = replace(request, objective=objective, profile=None)
    refused = (*state.refused, *drafts)[-MOST_REFUSED:]
    told = replace(state, refused=refused, refused_earlier=False, reminded=False)
    return replace(told, asks_instead=bare, request=request)


def count_unseen(state: AgentState, event: ActionFinished) -> tuple[str, ...]:
    """Return the files changed since the user last answered. Effects approved as a whole do not count."""
    if state.list_granted or event.outcome != "ok" or event.exact:
        return state.unseen
    return tuple(dict.fromkeys((*state.unseen, *event.changed)))[-MOST_UNSEEN:]
