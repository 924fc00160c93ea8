"""Back to an earlier message with the conversation, the files, or both; or on from there (L8)."""

import secrets
from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import ActionFinished, Recorded, Rewound, SessionStarted, UserMessage
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.rewind import present
from duckflow.loops.session import Session
from duckflow.loops.undo.undo import Undo
from duckflow.store.event_log import SqliteEventLog


class PastMessage(NamedTuple):
    """A message of the user's that can be gone back to: its number, from 1, and its place in the session."""

    number: int
    seq: int
    at: datetime
    text: str


class Rewind:
    """For the user. What is gone back behind stays in the log; files go back through undo."""

    def __init__(self, session: Session, log: SqliteEventLog, undoing: Undo) -> None:
        self._session = session
        self._log = log
        self._undoing = undoing

    def messages(self) -> Sequence[PastMessage]:
        """What the user said, oldest first."""
        return past_messages(self._log.load(self._session.state.session_id))

    async def back_to(self, number: int, *, conversation: bool = True, files: bool = True) -> UndoReport:
        """Go back to before a message, and say what became of the files."""
        state = self._session.state
        if state.running or state.task_running or state.background_runs:
            raise UserError("undo.busy")
        events = self._log.load(state.session_id)
        message = find_message(events, number)
        report = UndoReport()
        if files:
            since = [one.event for one in events if one.seq >= message.seq]
            done = {one.action_id for one in since if isinstance(one, ActionFinished)}
            report = await self._undoing.undo_actions(done)
        self._session.record(
            Rewound(to=message.seq, text=message.text, conversation=conversation, files=files)
        )
        return report


def past_messages(events: Sequence[Recorded]) -> Sequence[PastMessage]:
    """The messages of the present, oldest first."""
    said = [
        (one.seq, one.at, one.event.text) for one in present(events) if isinstance(one.event, UserMessage)
    ]
    return [PastMessage(number, *one) for number, one in enumerate(said, start=1)]


def find_message(events: Sequence[Recorded], number: int) -> PastMessage:
    """The message of this number; UsageError if there is none."""
    messages = past_messages(events)
    if not 1 <= number <= len(messages):
        raise UsageError("rewind.no_message", number=number, count=len(messages))
    return messages[number - 1]


def fork(log: SqliteEventLog, session_id: str, number: int | None = None) -> str:
    """A new session that begins as this one is now, or was before a message; its id."""
    events = log.load(session_id)
    upto = find_message(events, number).seq if number is not None else None
    new = secrets.token_hex(4)
    copied = [_renamed(one, new) for one in events if upto is None or one.seq < upto]
    log.copy(new, copied)
    return new


def _renamed(recorded: Recorded, session_id: str) -> Recorded:
    event = recorded.event
    if isinstance(event, SessionStarted):
        return replace(recorded, event=replace(event, session_id=session_id))
    return recorded
