"""The tables, as an append-only list of small steps; a file remembers how many it has had."""

import sqlite3
from collections.abc import Callable
from pathlib import Path

from duckflow.domain.errors import UserError
from duckflow.store.transactions import transaction


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


MIGRATIONS: tuple[Callable[[sqlite3.Connection], None], ...] = (_sessions_and_events,)


def migrate(connection: sqlite3.Connection, path: Path) -> None:
    """Take the steps this file has not had, all or none. A file of a newer program is left alone."""
    had = _version(connection)
    if had > len(MIGRATIONS):
        raise UserError("store.newer", path=str(path))
    if had < len(MIGRATIONS):
        with transaction(connection):
            # Read again: another process may have taken the steps while this one waited.
            for step in MIGRATIONS[_version(connection) :]:
                step(connection)
            connection.execute(f"PRAGMA user_version = {len(MIGRATIONS)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])
