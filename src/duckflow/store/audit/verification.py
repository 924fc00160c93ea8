"""Is the audit log whole? Every entry, its place, its hash, and the event it is about, one at a time."""

import hmac
import json
import sqlite3
from collections import Counter
from typing import Any, Literal, NamedTuple

from duckflow.store.audit.entries import GENESIS, AuditEntry, digest_of, hash_of
from duckflow.store.audit.log import Head, HeadFile, stored_entries
from duckflow.store.audit.seals import KeyFile, SealKey
from duckflow.store.database.database import Database

Fault = Literal[
    "changed",
    "missing",
    "moved",
    "forged",
    "rewritten",
    "cut",
    "no_head",
    "no_key",
    "event_changed",
    "event_missing",
    "event_unentered",
]
"""What is wrong. An entry was changed, is missing, stands where it does not belong, or was not sealed with
the key; all from some place on were written again; the end is missing, or the file that knows it, or the key;
the event is another one, or gone, or was stored without an entry."""

_EVENT = "SELECT id, body FROM events WHERE session_id = ? AND seq = ?"
_COUNTS = "SELECT session_id, count(*) FROM events WHERE id >= ? GROUP BY session_id"
_DELETED = 'SELECT body FROM audit WHERE body LIKE \'%"kind":"session_deleted"%\''


class AuditFinding(NamedTuple):
    """The first thing that is wrong, and with which entry."""

    fault: Fault
    number: int


class Checked(NamedTuple):
    """How many entries there are up to the first fault, if there is one."""

    entries: int
    finding: AuditFinding | None


class _EnteredEvents:
    """How many events of each session have an entry. Events from before there were entries do not count."""

    def __init__(self) -> None:
        self._first: int | None = None
        self._counts: Counter[str] = Counter()

    def add(self, session: str, event_id: int) -> None:
        """One more event that has an entry."""
        self._first = event_id if self._first is None else min(self._first, event_id)
        self._counts[session] += 1

    def all_entered(self, connection: sqlite3.Connection) -> bool:
        """Whether no event was stored without an entry."""
        stored = connection.execute(_COUNTS, (self._first or 0,))
        return all(count <= self._counts[session] for session, count in stored)


def check_audit(database: Database) -> Checked:
    """Go through the whole chain. Of a long one, no more is kept in memory than of a short one."""
    # The file first: what it knows of was stored before, so the view of the database that follows has it.
    head = HeadFile(database.path).read()
    key = KeyFile(database.path).read()
    with database.read() as connection:
        return _check(connection, head, key)


def _check(connection: sqlite3.Connection, head: Head | None, key: SealKey | None) -> Checked:
    last = Head(0, GENESIS)
    deleted = _deleted_sessions(connection)
    entered = _EnteredEvents()
    for entry in stored_entries(connection):
        content = _content(entry)
        fault = _fault(entry, content, last, head) or _seal_fault(entry, key)
        fault = fault or _event_fault(connection, content or {}, deleted, entered)
        if fault is not None:
            number = last.number + 1 if fault == "missing" else entry.number
            return Checked(last.number, AuditFinding(fault, number))
        last = Head(entry.number, entry.hash)
    return Checked(last.number, _end_fault(connection, last, _believed(head, key), entered))


def _end_fault(
    connection: sqlite3.Connection, last: Head, head: Head | None, entered: _EnteredEvents
) -> AuditFinding | None:
    if head is None and last.number:
        return AuditFinding("no_head", last.number)
    if head is not None and head.number > last.number:
        return AuditFinding("cut", last.number + 1)
    return None if entered.all_entered(connection) else AuditFinding("event_unentered", last.number)


def _believed(head: Head | None, key: SealKey | None) -> Head | None:
    """What the file says of the end, unless it was not written by who has the key."""
    if head is None or key is None or head.number < key.first:
        return head
    sealed = hmac.compare_digest(head.seal, key.seal_head(head.number, head.hash))
    return head if sealed else None


def _seal_fault(entry: AuditEntry, key: SealKey | None) -> Fault | None:
    """Whether an entry was sealed with the key. Those from before the key have none."""
    if key is None or entry.number < key.first:
        return "no_key" if entry.seal else None
    return None if hmac.compare_digest(entry.seal, key.seal_entry(entry.number, entry.hash)) else "forged"


def _deleted_sessions(connection: sqlite3.Connection) -> frozenset[str]:
    """The sessions that the user deleted, by what the log itself says of it."""
    contents = (_parsed(str(body)) or {} for (body,) in connection.execute(_DELETED))
    return frozenset(str(content.get("session")) for content in contents)


def _fault(entry: AuditEntry, content: dict[str, Any] | None, last: Head, head: Head | None) -> Fault | None:
    if entry.number > last.number + 1:
        return "missing"
    if content is None:
        return "changed"
    if content.get("n") != entry.number or content.get("prev") != last.hash:
        return "moved"
    if head is not None and head.number == entry.number and head.hash != entry.hash:
        return "rewritten"
    return None


def _content(entry: AuditEntry) -> dict[str, Any] | None:
    """What an entry says; None if it is not what was hashed."""
    return _parsed(entry.body) if hash_of(entry.body) == entry.hash else None


def _parsed(body: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None


def _event_fault(
    connection: sqlite3.Connection,
    content: dict[str, Any],
    deleted: frozenset[str],
    entered: _EnteredEvents,
) -> Fault | None:
    """Whether the event is still the one that was entered. A deleted session has none."""
    if "seq" not in content:
        return None
    session = str(content.get("session"))
    row = connection.execute(_EVENT, (session, content["seq"])).fetchone()
    if row is None:
        return None if session in deleted else "event_missing"
    entered.add(session, row[0])
    return None if digest_of(row[1]) == content.get("digest") else "event_changed"
