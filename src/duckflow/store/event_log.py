"""The event log in SQLite. Events returned by `append` survive a killed process."""

import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from duckflow.domain.errors import UserError
from duckflow.domain.events import Event, StoredEvent
from duckflow.store.audit.entries import event_fields
from duckflow.store.audit.log import Audit
from duckflow.store.database.database import Database
from duckflow.store.database.rows import decode, encode, note
from duckflow.store.memory import keep_memories

_LAST = "SELECT coalesce(max(seq), 0) FROM events WHERE session_id = ?"
_INSERT = "INSERT INTO events (session_id, seq, at, type, body) VALUES (?, ?, ?, ?, ?)"
_SELECT = "SELECT seq, at, type, body FROM events WHERE session_id = ? AND seq > ? ORDER BY seq"

_NOTES = frozenset(
    ("decision", "reply", "transition", "transition_refused", "vitals", "usage", "limit_set", "requirements")
)
"""Event types that nothing outside the file depends on. They reach the disk with the next event of another
type, such as the start of an action; until then, a power cut may lose them."""

_COUNTED = ("request_finished", "request_rated", "memory_kept")


class SqliteEventLog:
    """Event log for sessions. Each has one writer, which must load it before appending events."""

    def __init__(self, path: Path, clock: Callable[[], datetime] = datetime.now) -> None:
        self.database = Database(path)
        self._audit = Audit(path)
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, int] = {}

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[StoredEvent]:
        """Store all events durably and in order, or none. Return them as `load` would."""
        if not events:
            return ()
        bodies = [encode(event) for event in events]
        stored = [type(event).model_validate_json(body) for event, body in zip(events, bodies, strict=True)]
        with self._lock:
            last = self._last.get(session_id, 0)
            at = self._clock().astimezone(UTC)
            recorded = [
                # Skip validation: it would build the validators of all event types when the program starts.
                StoredEvent.model_construct(seq=seq, at=at, event=event)
                for seq, event in enumerate(stored, start=last + 1)
            ]
            self._store(session_id, recorded, bodies)
            self._last[session_id] = recorded[-1].seq
        return recorded

    def copy(self, session_id: str, recorded: Sequence[StoredEvent]) -> None:
        """Start a session with another session's events, without counting memories and outcomes again."""
        with self._lock:
            self._store(session_id, recorded, [encode(one.event) for one in recorded], counted=False)
            self._last[session_id] = recorded[-1].seq

    def _store(
        self, session_id: str, recorded: Sequence[StoredEvent], bodies: Sequence[str], *, counted: bool = True
    ) -> None:
        times = [one.at.isoformat() for one in recorded]
        events = [one.event for one in recorded]
        with self.database.write(through=any(one.type not in _NOTES for one in events)) as connection:
            (last,) = connection.execute(_LAST, (session_id,)).fetchone()
            if last != recorded[0].seq - 1:
                raise UserError("store.session_busy", session=session_id)
            noted = [one for one in events if counted or one.type not in _COUNTED]
            note(connection, session_id, times, noted)
            keep_memories(connection, times[-1], noted)
            for one, at, body in zip(recorded, times, bodies, strict=True):
                connection.execute(_INSERT, (session_id, one.seq, at, one.event.type, body))
            head = self._audit.append(connection, event_fields(connection, session_id, recorded, bodies))
        self._audit.settle(head)

    def load(self, session_id: str) -> Sequence[StoredEvent]:
        """Return every event of the session, oldest first; none for an unknown session."""
        with self._lock:  # so that no event is appended between reading and updating `_last`
            recorded = self.load_after(session_id, 0)
            self._last[session_id] = recorded[-1].seq if recorded else 0
        return recorded

    def load_after(self, session_id: str, seq: int) -> Sequence[StoredEvent]:
        """Return the events after number `seq`, for processes that follow a session without writing to it."""
        rows = self.database.query(_SELECT, (session_id, seq))
        return [_stored_event(session_id, *row) for row in rows]

    def close(self) -> None:
        """Close the file."""
        self.database.close()
        self._audit.close()


def _stored_event(session_id: str, seq: int, at: str, kind: str, body: str) -> StoredEvent:
    try:
        return StoredEvent(seq=seq, at=datetime.fromisoformat(at), event=decode(body))
    except ValueError as exc:
        raise UserError("store.session_unreadable", session=session_id, seq=seq, type=kind) from exc
