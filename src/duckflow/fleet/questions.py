"""The user's question that a run waits for: its hash, and the command that carries an answer."""

import hashlib
from collections.abc import Sequence

from duckflow.domain import events
from duckflow.domain.commands import AnswerShown, ChooseShown, ClientCommand, SayMessage, hash_of
from duckflow.domain.decision import Action
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.answers import read_answer, read_choice
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.views.approval import approval_view

WAITING: tuple[RequestOutcome, ...] = (
    "awaiting_approval",
    "consultation",
    "not_satisfied",
    "pending_user",
    "deferred",
)
"""Outcomes with which a run waits for a person."""
_LABEL = 200


def question_key(state: AgentState, earlier: Sequence[events.StoredEvent]) -> str:
    """Return a hash of the open question and of all that a yes would allow; empty without a question."""
    if state.approval is not None:
        asked = f"approval {state.approval.approval_id} {state.approval.digest}"
    elif state.consultation is not None:
        asked = f"consultation {state.consultation.consultation_id}"
    elif state.request is not None and state.request.outcome in WAITING:
        ended = [one.seq for one in earlier if isinstance(one.event, events.RequestFinished)]
        asked = f"message {state.request.request_id} {ended[-1] if ended else 0}"
    else:
        return ""
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def question_text(state: AgentState) -> str:
    """Return the open question in one line, for lists and notices."""
    said = ""
    if state.approval is not None:
        action = state.approval.action
        told = (
            "" if action.operation.startswith("file_ops.") else action_text(action)
        )  # the question names it
        said = f"{approval_view(state.approval).question} {told}".rstrip()
    elif state.consultation is not None:
        said = text(state.consultation.situation, **state.consultation.values)
    return on_one_line(said or state.reply)


def action_text(action: Action) -> str:
    """Return the operation of an action, and the command or file that it is about."""
    target = action.args.get("command") or action.args.get("path") or ""
    return cut(f"{action.operation} {target}".strip(), _LABEL)


def read_command(state: AgentState, said: str) -> ClientCommand | None:
    """Return the command that gives the answer `said` to the open question; None if `said` is unclear."""
    if state.approval is not None:
        answer = read_answer(said)
        return AnswerShown(question_hash=hash_of(state.approval), answer=answer) if answer else None
    if state.consultation is not None:
        way = read_choice(said, state.consultation)
        return ChooseShown(question_hash=hash_of(state.consultation), way=way) if way else None
    return SayMessage(text=said) if said.strip() else None


def unknown_actions(earlier: Sequence[events.StoredEvent]) -> list[str]:
    """Describe actions that may or may not have happened, unless the user was asked about them (C5)."""
    started: dict[str, Action] = {}
    unknown: list[str] = []
    for recorded in earlier:
        match recorded.event:
            case events.ActionStarted() as event:
                started[event.action_id] = event.action
            case events.ActionFinished(outcome="unknown") as event:
                action = started.get(event.action_id)
                unknown.append(action_text(action) if action else event.operation)
            case events.ConsultationRequested(kind="unknown"):
                unknown = []
            case _:
                pass
    return unknown
