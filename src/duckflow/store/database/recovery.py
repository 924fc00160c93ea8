"""Recovers a damaged file: sets it aside and copies its readable rows into a new one."""

import json
import os
import sqlite3
from collections import deque
from collections.abc import Generator, Iterable, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from duckflow.domain.events import ErrorReported
from duckflow.domain.work.memory import MemoryKind
from duckflow.store.database.connections import connect
from duckflow.store.database.event_rows import known_events
from duckflow.store.database.opening import make_private, sibling_file, transaction
from duckflow.store.database.session_rows import note

_LOGS = ("-wal", "-shm")
_MOST_STEPS = 20_000
_LAST_KEY = 2**32

# Columns of each table; the first is its key.
_EVENTS = ("id", "session_id", "seq", "at", "type", "body")
_ENTRIES = ("number", "body", "hash", "seal")
_UNSEALED_ENTRIES = ("number", "body", "hash", "''")
_MEMORIES = ("id", "kind", "text", "folded", "workspace", "kept", "touched", "used", "uses")
_IN_RANGE = "SELECT {columns} FROM {table} WHERE {key} BETWEEN ? AND ?"
_NOTHING = "SELECT {key} FROM {table} LIMIT 0"
_LAST = "SELECT max({key}) FROM {table}"
_INSERT = "INSERT OR IGNORE INTO {table} VALUES ({places})"
_OF_SESSION = "SELECT at, body FROM events WHERE session_id = ? ORDER BY seq"

# UnicodeDecodeError occurs when SQLite's own message quotes broken text.
_BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)

_Row = tuple[Any, ...]


def recover(path: Path) -> ErrorReported:
    """Copy the readable rows into a new file and swap the two. The damaged file is kept."""
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
    # Move the log first: next to the new file, SQLite would take it for that file's log.
    log, index = (sibling_file(path, suffix) for suffix in _LOGS)
    if log.exists() and log.stat().st_size:
        log.rename(sibling_file(aside, "-wal"))
    for made_anew in (log, index):
        made_anew.unlink(missing_ok=True)
    try:
        os.link(path, aside)
    except OSError:  # without hard links, the file is missing for a moment
        path.rename(aside)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return aside


def _copy(path: Path, fresh: sqlite3.Connection) -> int:
    """Copy every readable event and rebuild the session rows from them."""
    with transaction(fresh), closing(_open_damaged(path)) as damaged:
        fresh.execute("PRAGMA defer_foreign_keys = ON")
        _insert(fresh, "events", filter(_sound, _readable(damaged, "events", _EVENTS)))
        # Copied unchanged: verifying the audit log is a separate check.
        columns = _ENTRIES if _has_seals(damaged) else _UNSEALED_ENTRIES
        _insert(fresh, "audit", _readable(damaged, "audit", columns))
        # Not rebuilt from the events: notes that the user deleted must stay deleted.
        _insert(fresh, "memory", filter(_sound_memory, _readable(damaged, "memory", _MEMORIES)))
        sessions = fresh.execute("SELECT session_id FROM events GROUP BY session_id ORDER BY max(id)")
        for (session_id,) in sessions.fetchall():
            rows = fresh.execute(_OF_SESSION, (session_id,)).fetchall()
            note(fresh, session_id, [at for at, _ in rows], known_events(body for _, body in rows))
    return int(fresh.execute("SELECT count(*) FROM events").fetchone()[0])


def _insert(fresh: sqlite3.Connection, table: str, rows: Iterable[_Row]) -> None:
    for row in rows:
        fresh.execute(_INSERT.format(table=table, places=", ".join("?" * len(row))), row)


def _open_damaged(path: Path) -> sqlite3.Connection:
    damaged = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # Nothing is written; without this, SQLite reads no page of a truncated file.
    with suppress(*_BROKEN):
        damaged.execute("PRAGMA writable_schema = ON")
    return damaged


def _has_seals(damaged: sqlite3.Connection) -> bool:
    """Return whether the file has sealed entries, which older versions lack."""
    try:
        return any(row[1] == "seal" for row in damaged.execute("PRAGMA table_info(audit)"))
    except _BROKEN:
        return True


def _readable(damaged: sqlite3.Connection, table: str, columns: Sequence[str]) -> Generator[_Row]:
    """Yield every readable row. Where reading fails, retry the range in halves, the larger ones first."""
    in_range = _IN_RANGE.format(columns=", ".join(columns), table=table, key=columns[0])
    todo = deque([(0, _last_key(damaged, table, columns[0]))])
    for _ in range(_MOST_STEPS):
        if not todo:
            return
        low, high = todo.popleft()
        try:
            for row in damaged.execute(in_range, (low, high)):
                low = row[0] + 1
                yield row
        except _BROKEN:
            middle = (low + high) // 2
            if low < high:
                todo += [(low, middle), (middle + 1, high)]


def _last_key(damaged: sqlite3.Connection, table: str, key: str) -> int:
    """Return the last key to look for; -1 if the table is missing or the schema is lost.

    Without the schema, no row can be read.
    """
    try:
        damaged.execute(_NOTHING.format(key=key, table=table))
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return -1
    except _BROKEN:
        return -1
    try:
        return int(damaged.execute(_LAST.format(key=key, table=table)).fetchone()[0] or 0)
    except _BROKEN:
        return _LAST_KEY


def _sound(row: tuple[object, ...]) -> bool:
    """Return whether a readable row is valid: SQLite does not notice changed characters."""
    try:
        datetime.fromisoformat(str(row[3]))
        json.loads(str(row[5]))
    except ValueError:
        return False
    return isinstance(row[1], str) and isinstance(row[2], int)


def _sound_memory(row: tuple[object, ...]) -> bool:
    try:
        datetime.fromisoformat(str(row[5]))
        datetime.fromisoformat(str(row[7] or row[5]))
    except ValueError:
        return False
    return row[1] in get_args(MemoryKind) and isinstance(row[2], str)
