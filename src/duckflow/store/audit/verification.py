"""Is the audit log whole? Every entry, its place, its hash, and the event it is about, one at a time."""

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


class AuditCheck(NamedTuple):
    """How many entries there are up to the first fault, if there is one."""

    entries: int
    finding: AuditFinding | None


def check_audit(database: Database) -> AuditCheck:
    """Go through the whole chain. Of a long one, no more is kept in memory than of a short one."""
    # The file first: what it knows of was stored before, so the view of the database that follows has it.
    head = HeadFile(database.path).read()
    key = KeyFile(database.path).read()
    with database.read() as connection:
        return _Inspection(connection, head, key).check()


class _Inspection:
    """One look at all entries, as of one moment."""

    def __init__(self, connection: sqlite3.Connection, head: AuditHead | None, key: SealKey | None) -> None:
        self._connection = connection
        self._head = head
        self._key = key
        # The sessions that the user deleted, by what the log itself says of it.
        contents = (_parsed(str(body)) or {} for (body,) in connection.execute(_DELETED))
        self._deleted = frozenset(str(content.get("session")) for content in contents)
        # How many events of each session have an entry. Those before the first that has one do not count.
        self._entered: Counter[str] = Counter()
        self._first_entered: int | None = None

    def check(self) -> AuditCheck:
        """The first fault, if there is one."""
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
        """Whether an entry was sealed with the key. Those from before the key have none."""
        key = self._key
        if key is None or entry.number < key.first:
            return "no_key" if entry.seal else None
        return None if hmac.compare_digest(entry.seal, key.seal_entry(entry.number, entry.hash)) else "forged"

    def _event_fault(self, content: dict[str, Any]) -> Fault | None:
        """Whether the event is still the one that was entered. A deleted session has none."""
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
        """What the file says of the end, unless it was not written by who has the key."""
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
