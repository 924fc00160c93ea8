"""Database with old file contents for undo, full results and pasted pictures. If it is lost, no session is.

A change is recorded before it is made, together with the content that it replaces. After a crash, the files
are compared with this record.
"""

import hashlib
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.events import ErrorReported
from duckflow.domain.files.changes import FileChange
from duckflow.store.database.database import Database
from duckflow.store.database.recovery import set_aside

_LEVEL = 1  # measured on source code: reduces it to a third, at over 100 MB per second

_TOTAL = "SELECT coalesce(sum(packed), 0) FROM contents"
_OLDEST = """SELECT session_id, request_id FROM changes
WHERE NOT (session_id = ? AND action_id = ?) ORDER BY id LIMIT 1"""
_DROP = """DELETE FROM changes
WHERE session_id = ? AND request_id = ? AND NOT (session_id = ? AND action_id = ?)"""
_INSERT = "INSERT INTO changes (session_id, request_id, action_id, before, body) VALUES (?, ?, ?, ?, ?)"
_FORGET = "DELETE FROM {table} WHERE session_id = ?"
_SWEEP = """DELETE FROM contents WHERE digest NOT IN (SELECT before FROM changes WHERE before IS NOT NULL)
AND digest NOT IN (SELECT digest FROM snapshots)"""


_OUTPUTS = (
    """CREATE TABLE outputs (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        evidence_id TEXT NOT NULL,
        packed INTEGER NOT NULL,
        data BLOB NOT NULL
    )""",
    "CREATE INDEX outputs_evidence ON outputs (session_id, evidence_id)",
)
_PICTURES = (
    """CREATE TABLE pictures (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        digest TEXT NOT NULL,
        data BLOB NOT NULL
    )""",
    "CREATE INDEX pictures_digest ON pictures (digest)",
)
_DROP_PICTURES = """DELETE FROM pictures WHERE id <= (
    SELECT id FROM (SELECT id, sum(length(data)) OVER (ORDER BY id DESC) AS total FROM pictures)
    WHERE total > ? ORDER BY id DESC LIMIT 1)"""
_PICTURE_BYTES = 200_000_000
"""Largest total size of the kept pictures."""
_DROP_OUTPUT = "DELETE FROM outputs WHERE session_id = ? AND evidence_id = ?"
_INSERT_OUTPUT = "INSERT INTO outputs (session_id, evidence_id, packed, data) VALUES (?, ?, ?, ?)"
_DROP_OUTPUTS = """DELETE FROM outputs WHERE id <= (
    SELECT id FROM (SELECT id, sum(packed) OVER (ORDER BY id DESC) AS total FROM outputs)
    WHERE total > ? ORDER BY id DESC LIMIT 1)"""


class ChangeOwner(NamedTuple):
    """The session, request and action that a change belongs to."""

    session_id: str
    request_id: str
    action_id: str


_TABLES = (
    "CREATE TABLE contents (digest TEXT PRIMARY KEY, packed INTEGER NOT NULL, data BLOB NOT NULL)",
    "CREATE INDEX contents_packed ON contents (packed)",
    """CREATE TABLE changes (
        id INTEGER PRIMARY KEY,
        session_id TEXT NOT NULL,
        request_id TEXT NOT NULL,
        action_id TEXT NOT NULL,
        before TEXT,
        body TEXT NOT NULL
    )""",
    "CREATE INDEX changes_action ON changes (session_id, action_id)",
    "CREATE INDEX changes_before ON changes (before)",
    """CREATE TABLE snapshots (
        session_id TEXT NOT NULL,
        path TEXT NOT NULL,
        digest TEXT NOT NULL,
        mode INTEGER NOT NULL,
        PRIMARY KEY (session_id, path)
    )""",
    "CREATE INDEX snapshots_digest ON snapshots (digest)",
)


def _replace(path: Path) -> ErrorReported:
    return ErrorReported(key="undo.lost", values={"path": str(set_aside(path))})


class KeptFiles:
    """The database; any thread may use it. Keeps up to `limit` bytes of contents, and as much of results."""

    def __init__(self, path: Path, limit: int) -> None:
        self._path = path
        self.limit = limit
        self._lock = threading.Lock()
        self._database: Database | None = None
        self._told = False

    @property
    def _unused(self) -> bool:
        return self._database is None and not self._path.exists()

    @property
    def doubtful(self) -> bool:
        """True if the database was damaged and replaced, so that a missing record proves nothing."""
        return bool(self._opened().notices)

    def take_notices(self) -> tuple[ErrorReported, ...]:
        """Return the notices about opening the database. Later calls return none."""
        taken, self._told = self._told, self._database is not None
        return self._database.notices if self._database is not None and not taken else ()

    def keep(self, owner: ChangeOwner, changes: Sequence[FileChange], contents: Mapping[str, bytes]) -> None:
        """Store changes and the content they replace durably. Above the limit, the oldest are dropped."""
        packed = [(digest, zlib.compress(data, _LEVEL)) for digest, data in contents.items() if self.limit]
        with self._opened().write() as connection:
            _put(connection, packed)
            rows = [(*owner, change.before, change.model_dump_json()) for change in changes]
            connection.executemany(_INSERT, rows)
            self._make_room(connection, owner)

    def _make_room(self, connection: sqlite3.Connection, owner: ChangeOwner) -> None:
        """Drop the changes of whole requests, oldest first, but never data that the current action needs."""
        own = (owner.session_id, owner.action_id)
        if self._is_full(connection):
            connection.execute("DELETE FROM snapshots WHERE session_id != ?", own[:1])
            connection.execute(_SWEEP)
        while self._is_full(connection) and (oldest := connection.execute(_OLDEST, own).fetchone()):
            connection.execute(_DROP, (*oldest, *own))
            connection.execute(_SWEEP)

    def _is_full(self, connection: sqlite3.Connection) -> bool:
        return connection.execute(_TOTAL).fetchone()[0] > self.limit

    def changes(self, session_id: str, action_id: str) -> tuple[FileChange, ...]:
        """Return the recorded changes of an action, oldest first. After a crash, some may be missing."""
        if self._unused:
            return ()
        query = "SELECT body FROM changes WHERE session_id = ? AND action_id = ? ORDER BY id"
        rows = self._opened().query(query, (session_id, action_id))
        return tuple(FileChange.model_validate_json(body) for (body,) in rows)

    def last_changed(self, session_id: str) -> tuple[str, ...]:
        """Return the paths of the session's last changes, one for each folder."""
        if self._unused:
            return ()
        query = "SELECT body FROM changes WHERE session_id = ? ORDER BY id DESC LIMIT 500"
        rows = self._opened().query(query, (session_id,))
        paths = (FileChange.model_validate_json(body).path for (body,) in rows)
        return tuple({path.rpartition("/")[0]: path for path in paths}.values())

    def content(self, digest: str) -> bytes | None:
        """Return content by its SHA-256, None if it is not stored or no longer stored."""
        rows = self._opened().query("SELECT data FROM contents WHERE digest = ?", (digest,))
        return zlib.decompress(rows[0][0]) if rows else None

    def snapshot(self, session_id: str) -> dict[str, tuple[str, int]]:
        """Return the files before the last command: SHA-256 and permission bits, by path."""
        query = "SELECT path, digest, mode FROM snapshots WHERE session_id = ?"
        rows = self._opened().query(query, (session_id,))
        return {path: (digest, mode) for path, digest, mode in rows}

    def take_snapshot(
        self,
        session_id: str,
        files: Mapping[str, tuple[str, int]],
        read: Callable[[str], bytes | None],
    ) -> None:
        """Replace the session's snapshot. `read` returns the content of a path."""
        had = self.snapshot(session_id)
        gone = [(session_id, path) for path in had if path not in files]
        kept = {digest for (digest,) in self._opened().query("SELECT digest FROM contents")}
        packed: dict[str, bytes] = {}
        rows: list[tuple[str, str, str, int]] = []
        for path, (digest, mode) in files.items():
            if had.get(path) == (digest, mode):
                continue
            data = read(path) if digest not in kept and digest not in packed else None
            if data is not None and hashlib.sha256(data).hexdigest() == digest:
                packed[digest] = zlib.compress(data, _LEVEL)
            if digest in packed or digest in kept:
                rows.append((session_id, path, digest, mode))
        with self._opened().write() as connection:
            _put(connection, packed.items())
            connection.executemany("DELETE FROM snapshots WHERE session_id = ? AND path = ?", gone)
            connection.executemany("INSERT OR REPLACE INTO snapshots VALUES (?, ?, ?, ?)", rows)

    def drop_snapshot(self, session_id: str) -> None:
        """Drop the snapshot of a session. Call it when none of its commands runs any more."""
        with self._opened().write() as connection:
            connection.execute(_FORGET.format(table="snapshots"), (session_id,))
            connection.execute(_SWEEP)

    @property
    def keeps_outputs(self) -> bool:
        """True if results that the model sees in part are stored in full."""
        return self.limit > 0

    def keep_output(self, session_id: str, evidence_id: str, text: str) -> None:
        """Store the full text of a result. Above the limit, the oldest results are dropped."""
        packed = zlib.compress(text.encode("utf-8", "surrogatepass"), _LEVEL)
        with self._opened().write() as connection:
            connection.execute(_DROP_OUTPUT, (session_id, evidence_id))
            connection.execute(_INSERT_OUTPUT, (session_id, evidence_id, len(packed), packed))
            connection.execute(_DROP_OUTPUTS, (self.limit,))

    def output(self, session_id: str, evidence_id: str) -> str | None:
        """Return a stored result by its evidence id. None if it was shown in full or has been dropped."""
        if self._unused:
            return None
        query = "SELECT data FROM outputs WHERE session_id = ? AND evidence_id = ?"
        rows = self._opened().query(query, (session_id, evidence_id))
        return zlib.decompress(rows[0][0]).decode("utf-8", "surrogatepass") if rows else None

    def keep_picture(self, session_id: str, data: bytes) -> str:
        """Store a picture, and return its SHA-256. If there are too many, the oldest are dropped."""
        digest = hashlib.sha256(data).hexdigest()
        with self._opened().write() as connection:
            connection.execute(
                "INSERT INTO pictures (session_id, digest, data) VALUES (?, ?, ?)", (session_id, digest, data)
            )
            connection.execute(_DROP_PICTURES, (_PICTURE_BYTES,))
        return digest

    def picture(self, digest: str) -> bytes | None:
        """Return a picture by its SHA-256. None if it is not stored or has been dropped."""
        if self._unused:
            return None
        rows = self._opened().query("SELECT data FROM pictures WHERE digest = ?", (digest,))
        return rows[0][0] if rows else None

    def forget(self, session_id: str) -> None:
        """Delete everything stored for a session, and overwrite it."""
        if self._unused:
            return
        with self._opened().write() as connection:
            for table in ("changes", "snapshots", "outputs", "pictures"):
                connection.execute(_FORGET.format(table=table), (session_id,))
            connection.execute(_SWEEP)
        self._opened().fold_log()

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._database is not None:
                self._database.close()

    def _opened(self) -> Database:
        with self._lock:
            if self._database is None:
                self._database = Database(self._path, steps=(_TABLES, _OUTPUTS, _PICTURES), rescue=_replace)
            return self._database


def _put(connection: sqlite3.Connection, packed: Iterable[tuple[str, bytes]]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO contents (digest, packed, data) VALUES (?, ?, ?)",
        [(digest, len(data), data) for digest, data in packed],
    )
