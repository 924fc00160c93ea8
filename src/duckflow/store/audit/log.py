"""The audit log: every event leaves an entry that is chained to the previous one by its hash (G6).

Events and entries are written in one transaction, so that neither exists without the other. If users delete
events, the entries stay; they hold hashes instead of content. Triggers prevent accidental changes, hashes
reveal deliberate changes, and seals reveal recomputed hashes.

A chain is still valid if its last entries are removed. Therefore a small file next to the database names the
last entry, which must exist. After a crash, the file may name an earlier entry. If it names a later one or is
missing, the next entry skips numbers, so that the gap stays visible.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.store.audit.entries import GENESIS, AuditEntry, Fields, write_entry
from duckflow.store.audit.seals import create_key, read_key
from duckflow.store.database.connections import sibling_file
from duckflow.store.database.database import Database

_LAST = "SELECT number, hash FROM audit ORDER BY number DESC LIMIT 1"
_INSERT = "INSERT INTO audit (number, body, hash, seal) VALUES (?, ?, ?, ?)"
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


def _head(line: bytes) -> AuditHead | None:
    number, _, rest = line.partition(b"\n")[0].partition(b" ")
    found, _, seal = rest.strip().decode("ascii", "replace").partition(" ")
    return AuditHead(int(number), found, seal) if number.isdigit() and len(found) == len(GENESIS) else None


class Audit:
    """Appends entries to the chain. Entries and the events they describe become visible together."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._file = HeadFile(database)

    def append(self, connection: sqlite3.Connection, entries: Iterable[Fields]) -> AuditHead:
        """Append entries within the current transaction. Pass the result to `settle` after the commit."""
        row = connection.execute(_LAST).fetchone()
        last = AuditHead(*row) if row else AuditHead(0, GENESIS)
        if not last.number and not self._file.path.exists():
            self._file.advance(last)
        noted = self._file.read()
        # Skip one number if the file is missing, and all numbers that only the file has recorded.
        first = last.number + 2 if noted is None else max(last.number, noted.number) + 1
        key = read_key(self._database) or create_key(self._database, first)
        for number, fields in enumerate(entries, first):
            entry = write_entry(number, last.hash, fields)
            seal = key.seal("entry", number, entry.hash)
            connection.execute(_INSERT, entry._replace(seal=seal))
            last = AuditHead(number, entry.hash, key.seal("head", number, entry.hash))
        return last

    def settle(self, head: AuditHead) -> None:
        """Record the last committed entry in the file next to the database."""
        # The entries are already stored, so it is not an error if the file can't be updated.
        with suppress(OSError):
            self._file.advance(head)

    def close(self) -> None:
        """Flush the file to disk. Once at the end is enough: an older content is valid, too."""
        with suppress(OSError), self._file.path.open("rb+") as file:
            os.fsync(file)


def stored_entries(connection: sqlite3.Connection) -> Iterator[AuditEntry]:
    """Yield every entry one at a time, oldest first."""
    for number, *texts in connection.execute(_ALL):
        yield AuditEntry(number, *map(str, texts))


def read_entries(database: Database) -> Iterator[AuditEntry]:
    """Yield every entry from one consistent view of the database."""
    with database.read() as connection:
        yield from stored_entries(connection)
