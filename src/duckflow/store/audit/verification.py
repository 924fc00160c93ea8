"""Verifies the audit log: every entry, its number, its hash, and the event that it describes."""

import hmac
import json
import sqlite3
from collections import Counter
from typing import Any, Literal, NamedTuple

from duckflow.store.audit.entries import GENESIS, AuditEntry, digest_of, hash_of
from duckflow.store.audit.log import AuditHead, HeadFile, stored_entries
from duckflow.store.audit.seals import SealKey, read_key
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
"""Kinds of faults: of an entry, of the end of the chain, or of the event that an entry describes."""

_EVENT = "SELECT id, body FROM events WHERE session_id = ? AND seq = ?"
_COUNTS = "SELECT session_id, count(*) FROM events WHERE id >= ? GROUP BY session_id"
_DELETED = 'SELECT body FROM audit WHERE body LIKE \'%"kind":"session_deleted"%\''


class AuditFinding(NamedTuple):
    """The first fault found, and the number of its entry."""

    fault: Fault
    number: int


class AuditCheck(NamedTuple):
    """Number of entries before the first fault, and that fault, if any."""

    entries: int
    finding: AuditFinding | None


def check_audit(database: Database) -> AuditCheck:
    """Verify the whole chain, one entry at a time to save memory."""
    # Read the head file first: the database read that follows then includes the entry that the file names.
    head = HeadFile(database.path).read()
    key = read_key(database.path)
    with database.read() as connection:
        return _Inspection(connection, head, key).check()


class _Inspection:
    def __init__(self, connection: sqlite3.Connection, head: AuditHead | None, key: SealKey | None) -> None:
        self._connection = connection
        self._head = head
        self._key = key
        # Sessions that the user deleted, according to the audit log itself.
        contents = (_parsed(str(body)) or {} for (body,) in connection.execute(_DELETED))
        self._deleted = frozenset(str(content.get("session")) for content in contents)
        # Number of events with an entry, per session. Events stored before the first entry are not checked.
        self._entered: Counter[str] = Counter()
        self._first_entered: int | None = None

    def check(self) -> AuditCheck:
        last = AuditHead(0, GENESIS)
        for entry in stored_entries(self._connection):
            if entry.number > last.number + 1:
                return AuditCheck(last.number, AuditFinding("missing", last.number + 1))
            fault = self._fault(entry, last)
            if fault is not None:
                return AuditCheck(last.number, AuditFinding(fault, entry.number))
            last = AuditHead(entry.number, entry.hash)
        return AuditCheck(last.number, self._end_fault(last))

    def _fault(self, entry: AuditEntry, last: AuditHead) -> Fault | None:
        content = _parsed(entry.body) if hash_of(entry.body) == entry.hash else None
        if content is None:
            return "changed"
        if content.get("n") != entry.number or content.get("prev") != last.hash:
            return "moved"
        head, key = self._head, self._key
        if head is not None and head.number == entry.number and head.hash != entry.hash:
            return "rewritten"
        if key is None or entry.number < key.first:  # entries older than the key have no seal
            return "no_key" if entry.seal else self._event_fault(content)
        if not hmac.compare_digest(entry.seal, key.seal("entry", entry.number, entry.hash)):
            return "forged"
        return self._event_fault(content)

    def _event_fault(self, content: dict[str, Any]) -> Fault | None:
        """Check that the event still matches its entry. A deleted session has no events."""
        if "seq" not in content:
            return None
        session = str(content.get("session"))
        row = self._connection.execute(_EVENT, (session, content["seq"])).fetchone()
        if row is None:
            return None if session in self._deleted else "event_missing"
        event_id, body = row
        self._entered[session] += 1
        self._first_entered = min(event_id, self._first_entered or event_id)
        return None if digest_of(body) == content.get("digest") else "event_changed"

    def _end_fault(self, last: AuditHead) -> AuditFinding | None:
        head, key = self._head, self._key
        if head is not None and key is not None and head.number >= key.first:
            sealed = hmac.compare_digest(head.seal, key.seal("head", head.number, head.hash))
            head = head if sealed else None
        if head is None and last.number:
            return AuditFinding("no_head", last.number)
        if head is not None and head.number > last.number:
            return AuditFinding("cut", last.number + 1)
        stored = self._connection.execute(_COUNTS, (self._first_entered or 0,))
        if any(count > self._entered[session] for session, count in stored):
            return AuditFinding("event_unentered", last.number)
        return None


def _parsed(body: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None
