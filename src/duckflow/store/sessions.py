"""Lists, finds and deletes sessions."""

import json
import sqlite3
import unicodedata
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import field_validator

from duckflow.domain.errors import UsageError
from duckflow.domain.frozen import Frozen
from duckflow.store.audit.entries import Fields
from duckflow.store.audit.log import Audit
from duckflow.store.database.database import Database


class SessionSummary(Frozen):
    """Summary of a session. `outcome` is the outcome of its last finished request, if any."""

    id: str
    workspace: str
    title: str
    created: datetime
    updated: datetime
    events: int
    outcome: str | None

    @field_validator("created", "updated", mode="wrap")
    @classmethod
    def _readable(cls, stored: object, read: Callable[[object], datetime]) -> datetime:
        """Accept an invalid date in a damaged row, so that the session is still listed."""
        try:
            return read(stored)
        except ValueError:
            return datetime.min.replace(tzinfo=UTC)

    @property
    def is_run(self) -> bool:
        """True for a session in a copy made for a fleet run, which only the fleet may continue."""
        # Otherwise a command that was approved in both places would run twice.
        return Path(self.workspace).parent.name == self.id


_LAST_EVENTS = """
SELECT s.id, (
    SELECT e.type FROM events e
    WHERE e.session_id = s.id AND e.type IN (
        'user_message', 'approval_requested', 'approval_answered', 'consultation_answered', 'decision',
        'action_started', 'request_finished', 'session_started'
    )
    ORDER BY e.seq DESC LIMIT 1
) FROM sessions s WHERE s.events > 0
"""
_SELECT = "SELECT id, workspace, title, created, updated, events, outcome FROM sessions"
"""Columns in the order of the fields of SessionSummary."""


_SAID = """
SELECT s.id, e.body FROM sessions s
JOIN events e ON e.session_id = s.id AND e.type IN ('user_message', 'reply')
"""

_MOST_SEARCHED = 100_000
"""Characters of a session after which no more messages are added to the text that a list searches."""


class Sessions:
    """The sessions of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def listed(self, workspace: str | None = None) -> Sequence[SessionSummary]:
        """Return all sessions, or those of one workspace, with the most recently used first."""
        query = f"{_SELECT} WHERE :workspace IS NULL OR workspace = :workspace ORDER BY latest DESC"
        return [_summary(row) for row in self._database.query(query, {"workspace": workspace})]

    def latest(self, workspace: str) -> SessionSummary | None:
        """Return a workspace's most recently used session, if any, preferring sessions with a message."""
        query = f"{_SELECT} WHERE workspace = ? ORDER BY title = '', latest DESC LIMIT 1"
        rows = self._database.query(query, (workspace,))
        return _summary(rows[0]) if rows else None

    def search(self, words: str, workspace: str | None = None) -> Sequence[tuple[SessionSummary, str]]:
        """Return sessions with a message or reply that contains all words, each with the first such text."""
        wanted = _folded(words).split()
        query = f"{_SAID} WHERE :workspace IS NULL OR s.workspace = :workspace ORDER BY s.latest DESC, e.seq"
        found: dict[str, str] = {}
        for session_id, body in self._database.query(query, {"workspace": workspace}):
            said = str(json.loads(body).get("text", ""))
            if session_id not in found and all(word in _folded(said) for word in wanted):
                found[session_id] = said
        known = {one.id: one for one in self.listed(workspace)}
        return [(known[one], said) for one, said in found.items() if one in known]

    def said(self, workspace: str) -> Mapping[str, str]:
        """Return the beginning of everything said in each session of a workspace, by session id."""
        query = f"{_SAID} WHERE s.workspace = ? ORDER BY e.seq"
        said: dict[str, str] = {}
        for session_id, body in self._database.query(query, (workspace,)):
            so_far = said.get(session_id, "")
            if len(so_far) < _MOST_SEARCHED:
                said[session_id] = f"{so_far}\n{json.loads(body).get('text', '')}"
        return said

    def last_events(self) -> Mapping[str, str]:
        """Return the type of each session's last event that says whether it works, by session id."""
        return dict(self._database.query(_LAST_EVENTS))

    def show(self, wanted: str) -> SessionSummary:
        """Return the session with this id, or the only one whose id starts with it."""
        with self._database.read() as connection:
            return _find(connection, wanted)

    def find(self, session_id: str) -> SessionSummary | None:
        """Return the session with exactly this id, if there is one."""
        rows = self._database.query(f"{_SELECT} WHERE id = ?", (session_id,))
        return _summary(rows[0]) if rows else None

    def delete(self, wanted: str) -> SessionSummary:
        """Delete a session and overwrite its events. The audit log keeps its entries and records this."""
        audit = Audit(self._database.path)
        with self._database.write() as connection:
            found = _find(connection, wanted)
            connection.execute("DELETE FROM sessions WHERE id = ?", (found.id,))
            fields: Fields = {
                "at": datetime.now(UTC).isoformat(),
                "session": found.id,
                "workspace": found.workspace,
                "kind": "session_deleted",
            }
            head = audit.append(connection, [fields])
        audit.settle(head)
        self._database.fold_log()
        return found


def _folded(said: str) -> str:
    return unicodedata.normalize("NFKC", said).casefold()


def _find(connection: sqlite3.Connection, wanted: str) -> SessionSummary:
    query = f"{_SELECT} WHERE substr(id, 1, length(:id)) = :id ORDER BY id != :id LIMIT 2"
    found = [_summary(row) for row in connection.execute(query, {"id": wanted})] if wanted else []
    if not found:
        raise UsageError("store.no_session", session=wanted)
    if len(found) > 1 and found[0].id != wanted:
        raise UsageError("store.ambiguous_session", session=wanted)
    return found[0]


def _summary(row: tuple[object, ...]) -> SessionSummary:
    return SessionSummary.model_validate(dict(zip(SessionSummary.model_fields, row, strict=True)))
