"""The audit log: every event leaves an entry that is chained to the one before it by its hash (SPEC G6).

Why a table in the same file as the events: both are written in one transaction, so neither can exist without
the other, and a second process waits its turn, so there is one chain for all sessions. Why not the events
themselves: they are the user's to delete, and hold content; entries hold digests and stay. Triggers keep
programs from changing entries by mistake. Whoever means to can remove a trigger, and then the hashes show it;
if the hashes are mended, the seals do (see seals.py).

Cutting off the end leaves a chain that is whole. So the number and hash of the last entry also stand in a
small file next to the database, written after each commit: what that file knows of must be there. If its
writing is lost in a crash it is merely a little behind. Where it knows more than the database does, or is
gone, the next entry skips the numbers, so what is missing stays visible however much is added later.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.events import ApprovalAnswered, ApprovalRequested, Recorded
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
    """The last entry, as the file next to the database has it."""

    number: int
    hash: str
    seal: str = ""


class HeadFile:
    """The file next to the database that knows how far the chain goes."""

    def __init__(self, database: Path) -> None:
        self.path = sibling_file(database, "-audit")

    def read(self) -> AuditHead | None:
        """What it says; None if it is missing or says nothing that makes sense."""
        try:
            return _head(self.path.read_bytes()[:_HEAD_BYTES])
        except OSError:
            return None

    def create(self) -> None:
        """Begin with nothing, before the first entry is stored."""
        if not self.path.exists():
            self.advance(AuditHead(0, GENESIS))

    def advance(self, head: AuditHead) -> None:
        """Take note of a stored entry, unless another process has noted a later one meanwhile."""
        file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            before = _head(os.pread(file, _HEAD_BYTES, 0))
            if before is None or before.number < head.number:
                # One short write in place: others see the old line or the new one.
                os.pwrite(file, f"{head.number:020d} {head.hash} {head.seal}\n".encode(), 0)
        finally:
            os.close(file)

    def sync(self) -> None:
        """Make it outlive a power cut. At the end will do: until then it would be behind, not wrong."""
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
    """Adds to the chain. Entries become visible together with what they are about, or not at all."""

    def __init__(self, database: Path) -> None:
        self._file = HeadFile(database)
        self._key = KeyFile(database)

    def begin(self, connection: sqlite3.Connection) -> "AuditChain":
        """A chain to add to within the transaction that is open; `settle` it once that is committed."""
        row = connection.execute(_LAST).fetchone()
        last = AuditHead(*row) if row else AuditHead(0, GENESIS)
        if not last.number:
            self._file.create()
        noted = self._file.read()
        # One number is skipped where the file is gone, and all that it knows of and are not here.
        number = last.number + 2 if noted is None else max(last.number, noted.number) + 1
        return AuditChain(connection, last.hash, number, self._key.read_or_create(number))

    def settle(self, chain: "AuditChain") -> None:
        """What was added is durable: let the file next to the database know."""
        # Stored is stored: a file that stays behind for now is no reason to call that a failure.
        with suppress(OSError):
            if chain.head is not None:
                self._file.advance(chain.head)

    def close(self) -> None:
        """Nothing more is added."""
        with suppress(OSError):
            self._file.sync()


class AuditChain:
    """The end of the chain while a transaction is open."""

    def __init__(self, connection: sqlite3.Connection, previous: str, number: int, key: SealKey) -> None:
        self._connection = connection
        self._hash = previous
        self._number = number
        self._key = key
        self.head: AuditHead | None = None
        """The last entry that was added, as the file next to the database is to have it."""

    def add_events(self, session_id: str, recorded: Sequence[Recorded], bodies: Sequence[str]) -> None:
        """An entry for each event of a session."""
        row = self._connection.execute(_WORKSPACE, (session_id,)).fetchone()
        whose: Fields = {"session": session_id, "workspace": row[0] if row else ""}
        for one, body in zip(recorded, bodies, strict=True):
            event = one.event
            asked = self._asked(session_id, recorded, event) if isinstance(event, ApprovalAnswered) else None
            self.add({**whose, **fields_of(one, body, asked)})

    def add(self, fields: Fields) -> None:
        """One more entry."""
        entry = write_entry(self._number, self._hash, fields)
        entry = entry._replace(seal=self._key.seal_entry(entry.number, entry.hash))
        self._connection.execute(_INSERT, entry)
        self._number, self._hash = entry.number + 1, entry.hash
        self.head = AuditHead(entry.number, entry.hash, self._key.seal_head(entry.number, entry.hash))

    def _asked(self, session_id: str, now: Sequence[Recorded], answer: ApprovalAnswered) -> Approval | None:
        """The question that is answered; it may have been asked by an earlier process."""
        stored = self._connection.execute(_ASKED, (session_id,)).fetchall()
        for event in (*(one.event for one in now), *known_events(body for (body,) in stored)):
            if isinstance(event, ApprovalRequested) and event.approval.approval_id == answer.approval_id:
                return event.approval
        return None


def stored_entries(connection: sqlite3.Connection) -> Iterator[AuditEntry]:
    """Every entry, oldest first, one at a time."""
    for number, body, hashed, seal in connection.execute(_ALL):
        yield AuditEntry(number, str(body), str(hashed), str(seal))


def read_entries(database: Database) -> Iterator[AuditEntry]:
    """The same, as of one moment."""
    with database.read() as connection:
        yield from stored_entries(connection)
