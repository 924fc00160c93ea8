"""Is the audit log whole? Every entry, its place, its hash, and the event it is about, one at a time."""

import json
import sqlite3
from typing import Any, Literal, NamedTuple

from duckflow.store.audit.entries import GENESIS, AuditEntry, digest_of, hash_of
from duckflow.store.audit.log import Head, HeadFile, stored_entries
from duckflow.store.database.database import Database

Fault = Literal[
    "changed", "missing", "moved", "rewritten", "cut", "no_head", "event_changed", "event_missing"
]
"""What is wrong. An entry was changed, is missing, or stands where it does not belong; all from some place on
were written anew; the end is missing, or the file that knows the end; the event is another one, or gone."""

_EVENT = "SELECT body FROM events WHERE session_id = ? AND seq = ?"
_DELETED = 'SELECT body FROM audit WHERE body LIKE \'%"kind":"session_deleted"%\''


class AuditFinding(NamedTuple):
    """The first thing that is wrong, and with which entry."""

    fault: Fault
    number: int


class Checked(NamedTuple):
    """How many entries there are up to the first fault, if there is one."""

    entries: int
    finding: AuditFinding | None


def check_audit(database: Database) -> Checked:
    """Go through the whole chain. Of a long one, no more is kept in memory than of a short one."""
    # The file first: what it knows of was stored before, so the view of the database that follows has it.
    head = HeadFile(database.path).read()
    with database.read() as connection:
        return _check(connection, head)


def _check(connection: sqlite3.Connection, head: Head | None) -> Checked:
    last = Head(0, GENESIS)
    deleted = _deleted_sessions(connection)
    for entry in stored_entries(connection):
        content = _content(entry)
        fault = _fault(entry, content, last, head) or _event_fault(connection, content or {}, deleted)
        if fault is not None:
            number = last.number + 1 if fault == "missing" else entry.number
            return Checked(last.number, AuditFinding(fault, number))
        last = Head(entry.number, entry.hash)
    if head is None:
        return Checked(last.number, AuditFinding("no_head", last.number) if last.number else None)
    return Checked(last.number, AuditFinding("cut", last.number + 1) if head.number > last.number else None)


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
    """What an entry says; None where it is not what was hashed."""
    return _parsed(entry.body) if hash_of(entry.body) == entry.hash else None


def _parsed(body: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None


def _event_fault(
    connection: sqlite3.Connection, content: dict[str, Any], deleted: frozenset[str]
) -> Fault | None:
    """Whether the event is still the one that was entered. A deleted session has none."""
    if "seq" not in content:
        return None
    session = str(content.get("session"))
    row = connection.execute(_EVENT, (session, content["seq"])).fetchone()
    if row is None:
        return None if session in deleted else "event_missing"
    return None if digest_of(row[0]) == content.get("digest") else "event_changed"
