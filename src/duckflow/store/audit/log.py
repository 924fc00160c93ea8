"""The audit log: every event leaves an entry that is chained to the previous one by its hash (G6).

The entries are in a table in the same file as the events: both are written in one transaction, so neither can
exist without the other, and a second process waits, so that all sessions share one chain. The events
themselves would not do: users may delete them, and they hold content, while entries hold digests and stay.
Triggers protect entries from accidental changes. A deliberate attacker can remove a trigger, but then the
hashes reveal the change; if the hashes are recomputed, the seals reveal it (see seals.py).

Cutting entries off the end leaves a valid chain. Therefore the number and hash of the last entry are also
kept in a small file next to the database, written after each commit: the entry it names must exist. If a
crash loses that write, the file is merely a little behind. If the file is ahead of the database or missing,
the next entry skips numbers, so that the gap stays visible however much is added later.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.events import ApprovalAnswered, ApprovalRequested, StoredEvent
from duckflow.domain.questions.approval import Approval
from duckflow.store.audit.entries import GENESIS, AuditEntry, Fields, fields_of, write_entry
from duckflow.store.audit.seals import KeyFile, SealKey
from duckflow.store.database.database import Database
from duckflow.store.database.event_rows import known_events
from duckflow.store.database.opening import sibling_file

_LAST = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1"
_INSERT = "INSERT INTO audit (number, body, hash, seal) VALUES (?, ?, ?, ?)"
_WORKSPACE = "SELECT workspace FROM sessions WHERE id = ?"
_ASKED = """SELECT body FROM events WHERE session_id = ? AND type = 'approval_requested'
ORDER BY seq DESC LIMIT 5"""
_ALL = "SELECT number, body, hash, seal FROM audit ORDER BY number"
_HEAD_BYTES = 256


class AuditHead(NamedTuple):
    """The last entry, as recorded in the file next to the database."""

    number: int
    hash: str
    seal: str = ""


class HeadFile:
    """The file next to the database that records how far the chain goes."""

    def __init__(self, database: Path) -> None:
        self.path = sibling_file(database, "-audit")

    def read(self) -> AuditHead | None:
        """Return the recorded last entry; None if the file is missing or unreadable."""
        try:
            return _head(self.path.read_bytes()[:_HEAD_BYTES])
        except OSError:
            return None

    def create(self) -> None:
        """Create the file with an empty record before the first entry is stored."""
        if not self.path.exists():
            self.advance(AuditHead(0, GENESIS))

    def advance(self, head: AuditHead) -> None:
        """Record a stored entry, unless another process has already recorded a later one."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = _head(os.pread(file, _HEAD_BYTES, 0))
            if before is None or before.number < head.number:
                # One short write in place: readers see the old line or the new one.
                os.pwrite(file, f"{head.number:020d} {head.hash} {head.seal}\n".encode(), 0)
        finally:
            os.close(file)

    def sync(self) -> None:
        """Flush the file to disk. Once at the end is enough: until then it may be behind, but not wrong."""
        file = os.open(self.path, os.O_RDWR | os.O_CLOEXEC)
        try:
            os.fsync(file)
        finally:
            os.close(file)


def _head(line: bytes) -> AuditHead | None:
    number, _, rest = line.partition(b"\n")[0].partition(b" ")
    found, _, seal = rest.strip().decode("ascii", "replace").partition(" ")
    return AuditHead(int(number), found, seal) if number.isdigit() and len(found) == len(GENESIS) else None


class Audit:
    """Appends to the chain. Entries become visible together with the events they describe, or not at all."""

    def __init__(self, database: Path) -> None:
        self._file = HeadFile(database)
        self._key = KeyFile(database)

    def begin(self, connection: sqlite3.Connection) -> "AuditChain":
        """Open a chain to append to within the current transaction; call `settle` after the commit."""
        row = connection.execute(_LAST).fetchone()
        last = AuditHead(*row) if row else AuditHead(0, GENESIS)
        if not last.number:
            self._file.create()
        noted = self._file.read()
        # Skip one number if the file is missing, and all numbers it records that the database lacks.
        number = last.number + 2 if noted is None else max(last.number, noted.number) + 1
        return AuditChain(connection, last.hash, number, self._key.read_or_create(number))

    def settle(self, chain: "AuditChain") -> None:
        """Record the committed entries in the file next to the database."""
        # The entries are stored already, so a failure to update the file is not an error.
        with suppress(OSError):
            if chain.head is not None:
                self._file.advance(chain.head)

    def close(self) -> None:
        """Flush the file; no more entries are added."""
        with suppress(OSError):
            self._file.sync()


class AuditChain:
    """The end of the chain during a transaction."""

    def __init__(self, connection: sqlite3.Connection, previous: str, number: int, key: SealKey) -> None:
        self._connection = connection
        self._hash = previous
        self._number = number
        self._key = key
        self.head: AuditHead | None = None
        """Last entry added, to be recorded in the file next to the database."""

    def add_events(self, session_id: str, recorded: Sequence[StoredEvent], bodies: Sequence[str]) -> None:
        """Append an entry for each event of a session."""
        row = self._connection.execute(_WORKSPACE, (session_id,)).fetchone()
        whose: Fields = {"session": session_id, "workspace": row[0] if row else ""}
        for one, body in zip(recorded, bodies, strict=True):
            event = one.event
            asked = self._asked(session_id, recorded, event) if isinstance(event, ApprovalAnswered) else None
            self.add({**whose, **fields_of(one, body, asked)})

    def add(self, fields: Fields) -> None:
        """Append one entry."""
        entry = write_entry(self._number, self._hash, fields)
        entry = entry._replace(seal=self._key.seal_entry(entry.number, entry.hash))
        self._connection.execute(_INSERT, entry)
        self._number, self._hash = entry.number + 1, entry.hash
        self.head = AuditHead(entry.number, entry.hash, self._key.seal_head(entry.number, entry.hash))

    def _asked(
        self, session_id: str, now: Sequence[StoredEvent], answer: ApprovalAnswered
    ) -> Approval | None:
        """Return the question that is answered; an earlier process may have asked it."""
        stored = self._connection.execute(_ASKED, (session_id,)).fetchall()
        for event in (*(one.event for one in now), *known_events(body for (body,) in stored)):
            if isinstance(event, ApprovalRequested) and event.approval.approval_id == answer.approval_id:
                return event.approval
        return None


def stored_entries(connection: sqlite3.Connection) -> Iterator[AuditEntry]:
    """Yield every entry one at a time, oldest first."""
    for number, body, hashed, seal in connection.execute(_ALL):
        yield AuditEntry(number, str(body), str(hashed), str(seal))


def read_entries(database: Database) -> Iterator[AuditEntry]:
    """Yield every entry from one consistent view of the database."""
    with database.read() as connection:
        yield from stored_entries(connection)
