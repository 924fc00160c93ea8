"""The question a run waits with: its hash, and whether an answer fits it."""

import hashlib
from collections.abc import Sequence

from duckflow.domain.commands import AnswerShown, ChooseShown
from duckflow.domain.decision import Action
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ConsultationRequested,
    RequestFinished,
    StoredEvent,
)
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.answers import read_answer, read_choice

WAITING: tuple[RequestOutcome, ...] = (
    "awaiting_approval",
    "consultation",
    "not_satisfied",
    "pending_user",
    "deferred",
)
"""Outcomes with which a run waits for a person."""
_LABEL = 200


def question_key(state: AgentState, events: Sequence[StoredEvent]) -> str:
    """The hash of the open question, with all that a yes would cover; empty if nothing is asked."""
    if state.approval is not None:
        asked = f"approval {state.approval.approval_id} {state.approval.digest}"
    elif state.consultation is not None:
        asked = f"consultation {state.consultation.consultation_id}"
    elif state.request is not None and state.request.outcome in WAITING:
        ended = [one.seq for one in events if isinstance(one.event, RequestFinished)]
        asked = f"message {state.request.request_id} {ended[-1] if ended else 0}"
    else:
        return ""
    return hashlib.sha256(asked.encode()).hexdigest()[:16]


def is_answer(state: AgentState, said: str) -> bool:
    """Whether the words answer what is asked: an approval wants yes or no, a consultation a choice."""
    if state.approval is not None:
        return read_answer(said) is not None
    if state.consultation is not None:
        return read_choice(said, state.consultation) is not None
    return bool(said.strip())


def unknown_actions(events: Sequence[StoredEvent]) -> list[str]:
    """Actions that may or may not have happened, and that nobody was asked about yet (C5)."""
    started: dict[str, Action] = {}
    unknown: list[str] = []
    for recorded in events:
        match recorded.event:
            case ActionStarted() as event:
                started[event.action_id] = event.action
            case ActionFinished(outcome="unknown") as event:
                action = started.get(event.action_id)
                args = action.args if action else {}
                target = args.get("command") or args.get("path") or ""
                unknown.append(cut(f"{event.operation} {target}".strip(), _LABEL))
            case ConsultationRequested(kind="unknown"):
                unknown = []
            case _:
                pass
    return unknown


def words_of(command: AnswerShown | ChooseShown, state: AgentState) -> str:
    """An answer given on a page, in words that are read as exactly that answer."""
    if isinstance(command, AnswerShown):
        answer = command.answer
        if answer.yes:
            return "always" if answer.always else "yes"
        # In Japanese: after an English no, some reasons are read as something else ("no problem").
        return f"いいえ、{answer.reason}" if answer.reason.strip() else "no"
    way, asked = command.way, state.consultation
    if asked is None or (not way.choice and read_choice(way.text, asked) == way):
        return way.text
    return f"{asked.choices.index(way.choice) + 1} {way.text}" if way.choice else f"→ {way.text}"
