"""Return to an earlier message, with conversation, files or both; or start a new session there (L8)."""

import secrets
from collections.abc import Sequence

from duckflow.domain.errors import UserError
from duckflow.domain.events import (
    ActionFinished,
    Rewound,
    SessionStarted,
    StoredEvent,
    Undone,
    UserMessage,
)
from duckflow.domain.files.changes import UndoReport, net_changes
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.rewind import present
from duckflow.domain.session_client import PastMessage, find_message
from duckflow.loops.session import Session
from duckflow.loops.undo.undo import Undo
from duckflow.store.event_log import SqliteEventLog


async def rewind(
    session: Session,
    log: SqliteEventLog,
    undoing: Undo,
    before: int,
    *,
    conversation: bool = True,
    files: bool = True,
) -> UndoReport:
    """Rewind to before the message with this event number. Return the report about restored files.

    Rewound events stay in the log.
    """
    state = session.state
    if state.running or state.task_running or state.background_runs:
        raise UserError("undo.busy")
    events = log.load(state.session_id)
    message = _message_at(events, before)
    report = UndoReport()
    if files:
        since = [one.event for one in events if one.seq >= message.seq]
        report = await undoing.undo_actions(
            {one.action_id for one in since if isinstance(one, ActionFinished)}
        )
    session.record(Rewound(to=message.seq, text=message.text, conversation=conversation, files=files))
    return report


def past_messages(events: Sequence[StoredEvent]) -> Sequence[PastMessage]:
    """Return the messages that are still part of the conversation, oldest first."""
    said = [
        (one.seq, one.at, one.event.text) for one in present(events) if isinstance(one.event, UserMessage)
    ]
    return [PastMessage(number, *one) for number, one in enumerate(said, start=1)]


def _message_at(events: Sequence[StoredEvent], seq: int) -> PastMessage:
    messages = past_messages(events)
    number = next((one.number for one in messages if one.seq == seq), 0)
    return find_message(messages, number)


def changed_since(events: Sequence[StoredEvent], before: int | None) -> tuple[str, ...]:
    """Return the files that differ from their content before a message, as far as the events tell."""
    later = [one.event for one in events if before is not None and one.seq >= before]
    changes = (change for one in later if isinstance(one, ActionFinished | Undone) for change in one.changes)
    return tuple(one.path for one in net_changes(changes) if not one.ignored)


def fork(log: SqliteEventLog, session_id: str, before: int | None = None) -> str:
    """Create a session that begins like this one, up to a message or up to now. Return its id."""
    events = log.load(session_id)
    upto = _message_at(events, before).seq if before is not None else None
    new = secrets.token_hex(4)
    copied = [one for one in events if upto is None or one.seq < upto]
    for place, one in enumerate(copied):
        if isinstance(one.event, SessionStarted):
            copied[place] = replace(one, event=replace(one.event, session_id=new))
    log.copy(new, copied)
    return new
