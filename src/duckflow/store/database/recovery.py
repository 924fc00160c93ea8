"""A damaged file is set aside, and what can be read of it goes into a new one."""

import json
import os
import sqlite3
from collections import deque
from collections.abc import Generator, Iterable
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from duckflow.domain.events import ErrorReported, Event
from duckflow.domain.work.memory import MemoryKind
from duckflow.store.database.connections import connect
from duckflow.store.database.event_rows import decode
from duckflow.store.database.opening import beside, make_private, transaction
from duckflow.store.database.session_rows import note

_LOGS = ("-wal", "-shm")
_MOST_STEPS = 20_000
_LAST_ID = 2**32

_IN_RANGE = "SELECT id, session_id, seq, at, type, body FROM events WHERE id BETWEEN ? AND ?"
_LAST_EVENT = "SELECT max(id) FROM events"
_ENTRIES = "SELECT number, body, hash, seal FROM audit WHERE number BETWEEN ? AND ?"
_UNSEALED_ENTRIES = "SELECT number, body, hash, '' FROM audit WHERE number BETWEEN ? AND ?"
_LAST_ENTRY = "SELECT max(number) FROM audit"
_MEMORIES = (
    "SELECT id, kind, text, folded, workspace, kept, touched, used, uses FROM memory WHERE id BETWEEN ? AND ?"
)
_LAST_MEMORY = "SELECT max(id) FROM memory"
_OF_SESSION = "SELECT at, body FROM events WHERE session_id = ? ORDER BY seq"

# The second where SQLite's own message quotes broken text.
_BROKEN = (sqlite3.DatabaseError, UnicodeDecodeError)

_Row = tuple[Any, ...]


def recover(path: Path) -> ErrorReported:
    """Build a new file next to the damaged one, then let them change places. The old one is kept."""
    new = beside(path, "-new")
    for left_over in (new, *(beside(new, suffix) for suffix in _LOGS)):
        left_over.unlink(missing_ok=True)
    make_private(new)
    with closing(connect(new, 0)) as fresh:
        saved = _copy(path, fresh)
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    _change_places(path, new, aside)
    return ErrorReported(key="store.recovered", values={"path": str(aside), "events": saved})


def set_aside(path: Path) -> Path:
    """Put a damaged file away, with its log, so that a new one can take its place; where it is now."""
    aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%S%fZ}")
    new = beside(path, "-new")
    new.unlink(missing_ok=True)
    make_private(new)
    _change_places(path, new, aside)
    return aside


def _change_places(path: Path, new: Path, aside: Path) -> None:
    # The log goes first: next to the new file it would be taken for the new file's own.
    log, index = (beside(path, suffix) for suffix in _LOGS)
    if log.exists() and log.stat().st_size:
        log.rename(beside(aside, "-wal"))
    for made_anew in (log, index):
        made_anew.unlink(missing_ok=True)
    try:
        os.link(path, aside)
    except OSError:  # a file system without links: for a moment there is no file, else nothing differs
        path.rename(aside)
    new.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _copy(path: Path, fresh: sqlite3.Connection) -> int:
    """Store every event that can be read, and describe the sessions again from them."""
    with transaction(fresh), closing(_open_damaged(path)) as damaged:
        fresh.execute("PRAGMA defer_foreign_keys = ON")
        sound = filter(_sound, _readable(damaged, _IN_RANGE, _LAST_EVENT))
        fresh.executemany("INSERT OR IGNORE INTO events VALUES (?, ?, ?, ?, ?, ?)", sound)
        # As they are: whether the audit log is whole is for its own check to say.
        entries = _readable(damaged, _ENTRIES if _has_seals(damaged) else _UNSEALED_ENTRIES, _LAST_ENTRY)
        fresh.executemany("INSERT OR IGNORE INTO audit VALUES (?, ?, ?, ?)", entries)
        # Not from the events: what the user deleted since must stay deleted.
        texts = filter(_sound_memory, _readable(damaged, _MEMORIES, _LAST_MEMORY))
        fresh.executemany("INSERT OR IGNORE INTO memory VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", texts)
        sessions = fresh.execute("SELECT session_id FROM events GROUP BY session_id ORDER BY max(id)")
        for (session_id,) in sessions.fetchall():
            rows = fresh.execute(_OF_SESSION, (session_id,)).fetchall()
            note(fresh, session_id, [at for at, _ in rows], _known_events(body for _, body in rows))
    return int(fresh.execute("SELECT count(*) FROM events").fetchone()[0])


def _open_damaged(path: Path) -> sqlite3.Connection:
    damaged = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    # Nothing is written; without this, SQLite reads no page of a file that was cut short.
    with suppress(*_BROKEN):
        damaged.execute("PRAGMA writable_schema = ON")
    return damaged


def _has_seals(damaged: sqlite3.Connection) -> bool:
    """Whether the file is not from before entries were sealed."""
    try:
        return any(row[1] == "seal" for row in damaged.execute("PRAGMA table_info(audit)"))
    except _BROKEN:
        return True


def _readable(damaged: sqlite3.Connection, in_range: str, last: str) -> Generator[_Row]:
    """Every row that can be read. Where reading fails, the rest is tried in halves, the large ones first."""
    todo = deque([(0, _last_id(damaged, last))] if _takes_queries(damaged, in_range) else [])
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


def _takes_queries(damaged: sqlite3.Connection, in_range: str) -> bool:
    """False if not even the list of tables can be read: then no row can, however often that is tried."""
    try:
        damaged.execute(f"{in_range} LIMIT 0", (0, 0))
    except sqlite3.OperationalError:
        return True
    except _BROKEN:
        return False
    return True


def _last_id(damaged: sqlite3.Connection, query: str) -> int:
    try:
        return int(damaged.execute(query).fetchone()[0] or 0)
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return -1  # a file from before that table
        return _LAST_ID
    except _BROKEN:
        return _LAST_ID


def _sound(row: tuple[object, ...]) -> bool:
    """Whether a row that could be read is one we wrote: SQLite itself does not notice changed letters."""
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


def _known_events(bodies: Iterable[str]) -> Generator[Event]:
    for body in bodies:
        with suppress(ValidationError):
            yield decode(body)
