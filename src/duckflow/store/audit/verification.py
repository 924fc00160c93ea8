"""Verifies the audit log: every entry, its position, its hash, and the event it describes."""

import hmac
import json
import sqlite3
from collections import Counter
from typing import Any, Literal, NamedTuple

from duckflow.store.audit.entries import GENESIS, AuditEntry, digest_of, hash_of
from duckflow.store.audit.log import AuditHead, HeadFile, stored_entries
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
"""Kind of fault. An entry was changed, is missing, is out of place, or lacks a valid seal (`forged`); the
chain was rewritten from some point on; its end is missing, or the file that records it, or the key; an event
was changed, is missing, or was stored without an entry."""

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
    """Verify the whole chain. Memory use does not grow with its length."""
    # Read the file first: its entry was stored earlier, so the database view that follows contains it.
    head = HeadFile(database.path).read()
    key = KeyFile(database.path).read()
    with database.read() as connection:
        return _Inspection(connection, head, key).check()


class _Inspection:
    """Verification of all entries in one consistent view."""

    def __init__(self, connection: sqlite3.Connection, head: AuditHead | None, key: SealKey | None) -> None:
        self._connection = connection
        self._head = head
        self._key = key
        # Sessions that the user deleted, according to the log itself.
        contents = (_parsed(str(body)) or {} for (body,) in connection.execute(_DELETED))
        self._deleted = frozenset(str(content.get("session")) for content in contents)
        # Events with an entry, per session. Events before the first one with an entry are not checked.
        self._entered: Counter[str] = Counter()
        self._first_entered: int | None = None

    def check(self) -> AuditCheck:
        """Return the result of the verification."""
        last = AuditHead(0, GENESIS)
        for entry in stored_entries(self._connection):
            content = _parsed(entry.body) if hash_of(entry.body) == entry.hash else None
            fault = self._fault(entry, content, last) or self._seal_fault(entry)
            fault = fault or self._event_fault(content or {})
            if fault is not None:
                number = last.number + 1 if fault == "missing" else entry.number
                return AuditCheck(last.number, AuditFinding(fault, number))
            last = AuditHead(entry.number, entry.hash)
        return AuditCheck(last.number, self._end_fault(last))

    def _fault(self, entry: AuditEntry, content: dict[str, Any] | None, last: AuditHead) -> Fault | None:
        if entry.number > last.number + 1:
            return "missing"
        if content is None:
            return "changed"
        if content.get("n") != entry.number or content.get("prev") != last.hash:
            return "moved"
        head = self._head
        if head is not None and head.number == entry.number and head.hash != entry.hash:
            return "rewritten"
        return None

    def _seal_fault(self, entry: AuditEntry) -> Fault | None:
        """Check the seal of an entry. Entries older than the key have none."""
        key = self._key
        if key is None or entry.number < key.first:
            return "no_key" if entry.seal else None
        return None if hmac.compare_digest(entry.seal, key.seal_entry(entry.number, entry.hash)) else "forged"

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
        head = self._believed_head()
        if head is None and last.number:
            return AuditFinding("no_head", last.number)
        if head is not None and head.number > last.number:
            return AuditFinding("cut", last.number + 1)
        stored = self._connection.execute(_COUNTS, (self._first_entered or 0,))
        if any(count > self._entered[session] for session, count in stored):
            return AuditFinding("event_unentered", last.number)
        return None

    def _believed_head(self) -> AuditHead | None:
        """Return the recorded last entry, unless its seal shows that it was not written with the key."""
        head, key = self._head, self._key
        if head is None or key is None or head.number < key.first:
            return head
        sealed = hmac.compare_digest(head.seal, key.seal_head(head.number, head.hash))
        return head if sealed else None


def _parsed(body: str) -> dict[str, Any] | None:
    try:
        return dict(json.loads(body))
    except (ValueError, TypeError, RecursionError):
        return None
