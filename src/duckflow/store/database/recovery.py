"""Recovers a damaged file: renames it and copies its readable rows into a new file."""

import json
import os
import sqlite3
from collections import deque
from collections.abc import Generator, Iterable, Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from duckflow.domain.events import ErrorReported
from duckflow.domain.work.memory import MemoryKind
from duckflow.store.database.connections import connect, make_private, sibling_file, transaction
from duckflow.store.database.rows import known_events, note

_LOGS = ("-wal", "-shm")
_MOST_STEPS = 20_000
_LAST_ROW = 2**32

_ROWS = "SELECT * FROM {table} WHERE rowid BETWEEN ? AND ?"
_NOTHING = "SELECT rowid FROM {table} LIMIT 0"
_LAST = "SELECT max(rowid) FROM {table}"
_INSERT = "INSERT OR IGNORE INTO {table} ({columns}) VALUES ({places})"
_OF_SESSION = "SELECT at, body FROM events WHERE session_id = ? ORDER BY seq"

# UnicodeDecodeError occurs when SQLite's own message quotes damaged text.
_BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)

_Row = Mapping[str, Any]


def recover(path: Path) -> ErrorReported:
    """Copy the readable rows into a new file that takes the old one's place. The damaged file is kept."""
    new = _empty_file(path)
    with closing(connect(new, 0)) as fresh:
        saved = _copy(path, fresh)
    aside = _change_places(path, new)
    return ErrorReported(key="store.recovered", values={"path": str(aside), "events": saved})


def set_aside(path: Path) -> Path:
    """Replace a damaged file and its log by an empty file; return the damaged file's new path."""
    return _change_places(path, _empty_file(path))


def _empty_file(path: Path) -> Path:
    new = sibling_file(path, "-new")
    for left_over in (new, *(sibling_file(new, suffix) for suffix in _LOGS)):
        left_over.unlink(missing_ok=True)
    make_private(new)
    return new


def _change_places(path: Path, new: Path) -> Path:
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    # Move the log first: SQLite would take a log beside the new file as that file's log.
    log, index = (sibling_file(path, suffix) for suffix in _LOGS)
    if log.exists() and log.stat().st_size:
        log.rename(sibling_file(aside, "-wal"))
    for made_anew in (log, index):
        made_anew.unlink(missing_ok=True)
    try:
        os.link(path, aside)
    except OSError:  # the file system has no hard links: the file is missing for a moment
        path.rename(aside)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return aside


def _copy(path: Path, fresh: sqlite3.Connection) -> int:
    with transaction(fresh), closing(_open_damaged(path)) as damaged:
        fresh.execute("PRAGMA defer_foreign_keys = ON")
        _insert(fresh, "events", filter(_sound, _readable(damaged, "events")))
        # Copied unchanged, because verifying the audit log is a separate step.
        _insert(fresh, "audit", _readable(damaged, "audit"))
        # Not rebuilt from the events, because memories that the user deleted must stay deleted.
        _insert(fresh, "memory", filter(_sound_memory, _readable(damaged, "memory")))
        sessions = fresh.execute("SELECT session_id FROM events GROUP BY session_id ORDER BY max(id)")
        for (session_id,) in sessions.fetchall():
            rows = fresh.execute(_OF_SESSION, (session_id,)).fetchall()
            note(fresh, session_id, [at for at, _ in rows], known_events(body for _, body in rows))
    return int(fresh.execute("SELECT count(*) FROM events").fetchone()[0])


def _insert(fresh: sqlite3.Connection, table: str, rows: Iterable[_Row]) -> None:
    """Insert rows. They may have fewer columns than the table has now."""
    for row in rows:
        places = ", ".join("?" * len(row))
        insert = _INSERT.format(table=table, columns=", ".join(row), places=places)
        fresh.execute(insert, tuple(row.values()))


def _open_damaged(path: Path) -> sqlite3.Connection:
    damaged = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # Needed even for reading: otherwise SQLite reads no page of a truncated file.
    with suppress(*_BROKEN):
        damaged.execute("PRAGMA writable_schema = ON")
    damaged.row_factory = sqlite3.Row
    return damaged


def _readable(damaged: sqlite3.Connection, table: str) -> Generator[_Row]:
    """Yield every readable row. If a range can't be read, try its halves, larger ranges first."""
    todo = deque([(0, _last_row(damaged, table))])
    for _ in range(_MOST_STEPS):
        if not todo:
            return
        low, high = todo.popleft()
        try:
            for row in damaged.execute(_ROWS.format(table=table), (low, high)):
                low = row[0] + 1  # the first column of each table is its row number
                yield dict(row)
        except _BROKEN:
            middle = (low + high) // 2
            if low < high:
                todo += [(low, middle), (middle + 1, high)]


def _last_row(damaged: sqlite3.Connection, table: str) -> int:
    """Return the highest row number to try, -1 if the table is missing or the schema is lost."""
    try:
        damaged.execute(_NOTHING.format(table=table))
    except _BROKEN:
        return -1
    try:
        return int(damaged.execute(_LAST.format(table=table)).fetchone()[0] or 0)
    except _BROKEN:
        return _LAST_ROW


def _sound(row: _Row) -> bool:
    """Return whether a readable row is valid. SQLite does not notice damaged characters."""
    try:
        datetime.fromisoformat(str(row["at"]))
        json.loads(str(row["body"]))
    except ValueError:
        return False
    return isinstance(row["session_id"], str) and isinstance(row["seq"], int)


def _sound_memory(row: _Row) -> bool:
    try:
        datetime.fromisoformat(str(row["kept"]))
        datetime.fromisoformat(str(row["used"] or row["kept"]))
    except ValueError:
        return False
    return row["kind"] in get_args(MemoryKind) and isinstance(row["text"], str)
