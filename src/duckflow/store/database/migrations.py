"""The tables, as an append-only list of small steps; a file remembers how many it has had."""

import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path

from duckflow.domain.errors import UserError
from duckflow.store.database.opening import transaction


def _sessions_and_events(connection: sqlite3.Connection) -> None:
    connection.execute(
        """CREATE TABLE sessions (
            id TEXT PRIMARY KEY,
            workspace TEXT NOT NULL,
            title TEXT NOT NULL,
            created TEXT NOT NULL,
            updated TEXT NOT NULL,
            events INTEGER NOT NULL,
            outcome TEXT,
            latest INTEGER NOT NULL
        )"""
    )
    connection.execute("CREATE INDEX sessions_latest ON sessions (latest)")
    connection.execute(
        """CREATE TABLE events (
            id INTEGER PRIMARY KEY,
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            seq INTEGER NOT NULL,
            at TEXT NOT NULL,
            type TEXT NOT NULL,
            body TEXT NOT NULL,
            UNIQUE (session_id, seq)
        )"""
    )


def _outcomes(connection: sqlite3.Connection) -> None:
    connection.execute("ALTER TABLE sessions ADD COLUMN model TEXT NOT NULL DEFAULT ''")
    connection.execute(
        """CREATE TABLE outcomes (
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            request_id TEXT NOT NULL,
            model TEXT NOT NULL,
            profile TEXT,
            outcome TEXT NOT NULL,
            pauses INTEGER NOT NULL,
            loops INTEGER NOT NULL,
            attempts INTEGER NOT NULL,
            satisfaction REAL,
            rating INTEGER,
            PRIMARY KEY (session_id, request_id)
        )"""
    )


def _audit(connection: sqlite3.Connection) -> None:
    connection.execute(
        "CREATE TABLE audit (number INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"
    )
    for change in ("UPDATE", "DELETE"):
        connection.execute(
            f"CREATE TRIGGER audit_no_{change.lower()} BEFORE {change} ON audit "
            "BEGIN SELECT RAISE(ABORT, 'the audit log is only added to'); END"
        )


def _memory(connection: sqlite3.Connection) -> None:
    # AUTOINCREMENT: a number the user has seen never comes to mean another text.
    connection.execute(
        """CREATE TABLE memory (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            kind TEXT NOT NULL,
            text TEXT NOT NULL,
            folded TEXT NOT NULL,
            workspace TEXT NOT NULL,
            kept TEXT NOT NULL,
            touched TEXT NOT NULL,
            used TEXT,
            uses INTEGER NOT NULL DEFAULT 0
        )"""
    )


def _seals(connection: sqlite3.Connection) -> None:
    # Entries from before have none; the file with the key says where the sealed ones begin.
    connection.execute("ALTER TABLE audit ADD COLUMN seal TEXT NOT NULL DEFAULT ''")


def _inbox(connection: sqlite3.Connection) -> None:
    # AUTOINCREMENT: whoever waits for the result of a number never gets that of another.
    connection.execute(
        """CREATE TABLE inbox (
            id INTEGER PRIMARY KEY AUTOINCREMENT,
            session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
            at TEXT NOT NULL,
            body TEXT NOT NULL,
            result TEXT
        )"""
    )
    connection.execute("CREATE INDEX inbox_waiting ON inbox (session_id) WHERE result IS NULL")


Migrations = Sequence[Callable[[sqlite3.Connection], None]]
MIGRATIONS: Migrations = (_sessions_and_events, _outcomes, _audit, _memory, _seals, _inbox)


def migrate(connection: sqlite3.Connection, path: Path, steps: Migrations | None = None) -> None:
    """Take the steps this file has not had, all or none. A file of a newer program is left alone."""
    steps = MIGRATIONS if steps is None else steps
    had = _version(connection)
    if had > len(steps):
        raise UserError("store.newer", path=str(path))
    if had < len(steps):
        with transaction(connection):
            # Read again: another process may have taken the steps while this one waited.
            for step in steps[_version(connection) :]:
                step(connection)
            connection.execute(f"PRAGMA user_version = {len(steps)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
