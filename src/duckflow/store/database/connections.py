"""Opens connections to the database file: durable, with a timeout, checked for damage, and migrated."""

import sqlite3
from functools import partial
from pathlib import Path
from typing import Literal

from duckflow.store.database.errors import is_damage
from duckflow.store.database.migrations import MIGRATIONS, Migrations, migrate

Check = Literal["quick_check", "integrity_check"] | None

# WAL allows reading during a write; FULL makes sure that commits survive a power cut.
_SETTINGS = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON", "secure_delete = ON")


class DatabaseDamaged(Exception):
    """The content of the file is damaged."""


def connect(
    path: Path, patience_s: float, *, check: Check = None, steps: Migrations = MIGRATIONS
) -> sqlite3.Connection:
    """Open the file and add missing tables. Raise DatabaseDamaged if the file is damaged."""
    connection = sqlite3.connect(path, timeout=patience_s, isolation_level=None, check_same_thread=False)
    # A damaged byte spoils only its own character.
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")
    try:
        for setting in _SETTINGS:
            connection.execute(f"PRAGMA {setting}")
        _check(connection, check)
        migrate(connection, path, steps)
    except BaseException as exc:
        connection.close()
        if _tells_damage(exc):
            raise DatabaseDamaged from exc
        raise
    return connection


def _check(connection: sqlite3.Connection, check: Check) -> None:
    finding = connection.execute(f"PRAGMA {check}(1)").fetchone()[0] if check else "ok"
    if finding != "ok":
        raise DatabaseDamaged(finding)


def _tells_damage(error: BaseException) -> bool:
    if isinstance(error, sqlite3.DatabaseError):
        return is_damage(error) or "unsupported file format" in str(error)
    return isinstance(error, UnicodeDecodeError)  # raised when SQLite's own message quotes damaged text
