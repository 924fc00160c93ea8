"""Long-term memory in SQLite: kept with the event that says so, found again, changed, deleted."""

import sqlite3
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, MemoryKept
from duckflow.domain.frozen import replace
from duckflow.domain.work.memory import Memory, memory_line
from duckflow.store.database.database import Database
from duckflow.store.memory_search import ranked

MOST_RECALLED, MOST_LETTERS = 5, 800
"""Texts that a request brings back, and how long they may be together."""

_SELECT = "SELECT id, kind, text, workspace, kept, used, uses FROM memory"
"""In the order of the fields of Memory."""
_KNOWN = "SELECT id FROM memory WHERE folded = ? AND workspace IN ('', ?) LIMIT 1"
_INSERT = "INSERT INTO memory (kind, text, folded, workspace, kept, touched) VALUES (?, ?, ?, ?, ?, ?)"
_TOUCH = "UPDATE memory SET touched = ? WHERE id = ?"
_USED = "UPDATE memory SET used = ?1, touched = ?1, uses = uses + 1 WHERE id = ?2"
_TRIM = """
DELETE FROM memory WHERE id IN (
    SELECT id FROM memory ORDER BY touched, uses, id LIMIT max(0, (SELECT count(*) FROM memory) - ?)
)
"""


def keep_memories(connection: sqlite3.Connection, at: str, events: Iterable[Event]) -> None:
    """Keep what these events say is to be kept; what is known already only counts as new again."""
    for event in events:
        if not isinstance(event, MemoryKept) or not (text := memory_line(event.text)):
            continue
        folded = _folded(text)
        known = connection.execute(_KNOWN, (folded, event.workspace)).fetchone()
        if known:
            connection.execute(_TOUCH, (at, known[0]))
        else:
            connection.execute(_INSERT, (event.kind, text, folded, event.workspace, at, at))


def _now() -> datetime:
    return datetime.now(UTC)


class Memories:
    """The texts of a database."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = _now) -> None:
        self._database = database
        self._clock = clock

    def listed(self, workspace: str | None = None) -> Sequence[Memory]:
        """All texts, or those that count in a workspace; the newest first."""
        query = f"{_SELECT} WHERE ?1 IS NULL OR workspace IN ('', ?1) ORDER BY id DESC"
        with self._database.read() as connection:
            return [_memory(row) for row in connection.execute(query, (workspace,))]

    def recall(self, wanted: str, workspace: str, most_kept: int) -> Sequence[Memory]:
        """What speaks of the same things, then other wishes. Past `most_kept` some are dropped."""
        now = self._clock().astimezone(UTC).isoformat()
        with self._database.write() as connection:
            connection.execute(_TRIM, (most_kept,))
            rows = connection.execute(f"{_SELECT} WHERE workspace IN ('', ?) ORDER BY id DESC", (workspace,))
            here = [_memory(row) for row in rows]
            wishes = (one for one in here if one.kind == "preference")
            found = _fitting({one.id: one for one in (*ranked(here, wanted), *wishes)}.values())
            connection.executemany(_USED, [(now, one.id) for one in found])
        return found

    def edit(self, wanted: int, text: str) -> Memory:
        """Put another text in the place of one."""
        line = memory_line(text)
        if not line:
            raise UsageError("memory.empty")
        with self._database.write() as connection:
            found = _find(connection, wanted)
            change = "UPDATE memory SET text = ?, folded = ? WHERE id = ?"
            connection.execute(change, (line, _folded(line), wanted))
        return replace(found, text=line)

    def delete(self, wanted: Sequence[int]) -> Sequence[Memory]:
        """Delete these, all or none, and overwrite what they said. Returns what they were."""
        with self._database.write() as connection:
            gone = [_find(connection, one) for one in dict.fromkeys(wanted)]
            connection.executemany("DELETE FROM memory WHERE id = ?", [(one.id,) for one in gone])
        self._database.fold_log()
        return gone

    def clear(self) -> int:
        """Delete all of them; how many there were."""
        with self._database.write() as connection:
            count = connection.execute("DELETE FROM memory").rowcount
        self._database.fold_log()
        return count


def _fitting(memories: Iterable[Memory]) -> list[Memory]:
    found = list(islice(memories, MOST_RECALLED))
    while sum(len(one.text) for one in found) > MOST_LETTERS:
        found.pop()
    return found


def _find(connection: sqlite3.Connection, wanted: int) -> Memory:
    row = connection.execute(f"{_SELECT} WHERE id = ?", (wanted,)).fetchone()
    if row is None:
        raise UsageError("memory.no_such", id=wanted)
    return _memory(row)


def _folded(text: str) -> str:
    """What makes two texts the same."""
    return unicodedata.normalize("NFKC", text).casefold().rstrip(".!。！ ")


def _memory(row: tuple[object, ...]) -> Memory:
    return Memory.model_validate(dict(zip(Memory.model_fields, row, strict=True)))
