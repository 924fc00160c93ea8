"""Long-term memory in SQLite: short notes, stored with their event, found by topic, edited or deleted."""

import math
import sqlite3
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from itertools import islice

from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, MemoryKept
from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.work.memory import Memory, memory_line
from duckflow.store.database.database import Database

MOST_RECALLED, MOST_LETTERS = 5, 800
"""Largest number of notes to recall for a request, and their largest total length in characters."""

_SELECT = "SELECT id, kind, text, workspace, kept, used, uses FROM memory"
"""Columns in the order of the fields of Memory."""
_KNOWN = "SELECT id FROM memory WHERE folded = ? AND workspace IN ('', ?) LIMIT 1"
_INSERT = "INSERT INTO memory (kind, text, folded, workspace, kept, touched) VALUES (?, ?, ?, ?, ?, ?)"
_TOUCH = "UPDATE memory SET touched = ? WHERE id = ?"
_USED = "UPDATE memory SET used = ?, touched = ?, uses = uses + 1 WHERE id = ?"
_TRIM = """
DELETE FROM memory WHERE id IN (
    SELECT id FROM memory ORDER BY touched, uses, id LIMIT max(0, (SELECT count(*) FROM memory) - ?)
)
"""

# Kanji, katakana and hangul carry meaning, while hiragana is mostly grammar.
_DENSE = lazy_regex(r"[\u3400-\u4dbf\u4e00-\u9fff々\u30a1-\u30fa\u30fcー\uac00-\ud7af]+")
_WORD = lazy_regex(r"[^\W_\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]{2,}")
_EMPTY = lazy_regex(
    "an|and|are|as|at|be|but|by|can|could|did|do|does|for|from|had|has|have|how|if|in|into|is|it|its|me|my|no|not"
    "|of|on|or|our|out|please|should|so|that|the|their|them|then|there|these|they|this|to|up|us|was|we|what|when"
    "|where|which|who|why|will|with|would|you|your"
)
_ENDING = lazy_regex(r"(?<=\w{3})(ing|ed|es|e|(?<!s)s)$")
"""Endings that are removed, so that test, tests, tested and testing count as the same word."""


def keep_memories(connection: sqlite3.Connection, at: str, events: Iterable[Event]) -> None:
    """Store the notes in these events. A note that is already stored is only marked as recent."""
    for event in events:
        if isinstance(event, MemoryKept) and (text := memory_line(event.text)):
            folded = _folded(text)
            if known := connection.execute(_KNOWN, (folded, event.workspace)).fetchone():
                connection.execute(_TOUCH, (at, known[0]))
            else:
                connection.execute(_INSERT, (event.kind, text, folded, event.workspace, at, at))


class Memories:
    """The notes of a database."""

    def __init__(self, database: Database, clock: Callable[[], datetime] = datetime.now) -> None:
        self._database = database
        self._clock = clock

    def listed(self, workspace: str | None = None) -> Sequence[Memory]:
        """Return all notes, or those that apply to a workspace, newest first."""
        query = f"{_SELECT} WHERE :workspace IS NULL OR workspace IN ('', :workspace) ORDER BY id DESC"
        return [_memory(row) for row in self._database.query(query, {"workspace": workspace})]

    def recall(self, wanted: str, workspace: str, most_kept: int) -> Sequence[Memory]:
        """Return notes on the same topic, then preferences. Beyond `most_kept`, old notes are deleted."""
        now = self._clock().astimezone(UTC).isoformat()
        with self._database.write() as connection:
            connection.execute(_TRIM, (most_kept,))
            rows = connection.execute(f"{_SELECT} WHERE workspace IN ('', ?) ORDER BY id DESC", (workspace,))
            here = [_memory(row) for row in rows]
            wishes = (one for one in here if one.kind == "preference")
            found = _fitting({one.id: one for one in (*ranked(here, wanted), *wishes)}.values())
            connection.executemany(_USED, [(now, now, one.id) for one in found])
        return found

    def edit(self, wanted: int, text: str) -> Memory:
        """Replace the text of a note."""
        line = memory_line(text)
        if not line:
            raise UsageError("memory.empty")
        with self._database.write() as connection:
            found = _find(connection, wanted)
            change = "UPDATE memory SET text = ?, folded = ? WHERE id = ?"
            connection.execute(change, (line, _folded(line), wanted))
        return replace(found, text=line)

    def delete(self, wanted: Sequence[int]) -> Sequence[Memory]:
        """Delete these notes, all or none, overwrite their text, and return them."""
        with self._database.write() as connection:
            gone = [_find(connection, one) for one in dict.fromkeys(wanted)]
            connection.executemany("DELETE FROM memory WHERE id = ?", [(one.id,) for one in gone])
        self._database.fold_log()
        return gone

    def clear(self) -> int:
        """Delete all notes and return their number."""
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
    return unicodedata.normalize("NFKC", text).casefold().rstrip(".!。！ ")


def _memory(row: tuple[object, ...]) -> Memory:
    return Memory.model_validate(dict(zip(Memory.model_fields, row, strict=True)))


def terms_of(text: str) -> frozenset[str]:
    """Return the topics of a text: words and, in scripts without spaces, pairs of characters."""
    plain = unicodedata.normalize("NFKC", text).casefold()
    words = {_ENDING.sub("", word) for word in _WORD.findall(plain) if not _EMPTY.fullmatch(word)}
    for run in _DENSE.findall(plain):
        words |= {run[at : at + 2] for at in range(len(run) - 1)} or {run}
    return frozenset(words)


def ranked(memories: Sequence[Memory], wanted: str) -> list[Memory]:
    """Return the notes that share a word with `wanted`, best match first. Rare words count more."""
    terms = [terms_of(one.text) for one in memories]
    spread = Counter(term for found in terms for term in found)
    asked = terms_of(wanted)
    scored = [
        (sum(math.log(1 + len(memories) / spread[term]) for term in found & asked), one)
        for found, one in zip(terms, memories, strict=True)
    ]
    near = [(score, one) for score, one in scored if score > 0]
    return [one for _, one in sorted(near, key=lambda pair: (-pair[0], -pair[1].id))]
