"""Opens the database file: private, durable, checked, migrated, and with errors that the user can act on."""

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Literal

from duckflow.domain.errors import UserError
from duckflow.store.database.migrations import MIGRATIONS, Migrations

Check = Literal["quick_check", "integrity_check"] | None

_PAUSE_S = 0.02

_PRIMARY = 0xFF
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_NO_ACCESS = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM)
_IN_USE = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL)
_BY_CODE = {
    sqlite3.SQLITE_FULL: "store.disk_full",
    sqlite3.SQLITE_IOERR: "store.disk_error",
    **dict.fromkeys(_NO_ACCESS, "store.read_only"),
    **dict.fromkeys(_IN_USE, "store.locked"),
    **dict.fromkeys(_DAMAGE, "store.damaged"),
}
_NOT_WRITABLE = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EISDIR, errno.ENOTDIR, errno.EEXIST)
_BY_ERRNO = {
    **dict.fromkeys((errno.ENOSPC, errno.EDQUOT), "store.disk_full"),
    **dict.fromkeys(_NOT_WRITABLE, "store.read_only"),
}

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


def migrate(connection: sqlite3.Connection, path: Path, steps: Migrations = MIGRATIONS) -> None:
    """Apply the missing steps, all or none. Refuse a file of a newer version of Duckflow."""
    had = _version(connection)
    if had > len(steps):
        raise UserError("store.newer", path=str(path))
    if had < len(steps):
        with transaction(connection):
            # Read the version again: another process may have applied steps while this one waited.
            for statement in chain.from_iterable(steps[_version(connection) :]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {len(steps)}")


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def sibling_file(path: Path, suffix: str) -> Path:
    """Return the path of a file beside the database, named like SQLite's own."""
    return path.with_name(path.name + suffix)


def make_private(path: Path) -> None:
    """Create the file as private, or make it private. SQLite's companion files get the same mode."""
    # Closing an existing file would release the locks of all other connections of this process.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


@contextmanager
def alone(path: Path, patience_s: float) -> Generator[None]:
    """Hold a lock, so that no other process can open, check or repair the file meanwhile."""
    lock = os.open(sibling_file(path, "-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    end = time.monotonic() + patience_s
    try:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError as exc:
                if time.monotonic() >= end:
                    busy = sqlite3.OperationalError("another process is opening the file")
                    busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
                    raise busy from exc
            time.sleep(_PAUSE_S)
        yield
    finally:
        os.close(lock)


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """Run a transaction. IMMEDIATE waits until no one else writes; DEFERRED allows others to write."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has already rolled back after some errors, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def is_damage(error: sqlite3.Error) -> bool:
    """Return whether the content of the file is damaged, not just inaccessible."""
    return _code(error) in _DAMAGE


@contextmanager
def translated(path: Path) -> Generator[None]:
    """Translate errors of SQLite and the system for the user; programming errors are raised unchanged."""
    try:
        yield
    except sqlite3.Error as exc:
        key = _BY_CODE.get(_code(exc))
        if key is None:
            raise
        raise UserError(key, path=str(path), reason=str(exc)) from exc
    except OSError as exc:
        key = _BY_ERRNO.get(exc.errno or 0, "store.disk_error")
        raise UserError(key, path=str(path), reason=exc.strerror or str(exc)) from exc


def _code(error: sqlite3.Error) -> int:
    """Return SQLite's primary error code, -1 for errors raised by Python's sqlite3 module itself."""
    return getattr(error, "sqlite_errorcode", -1) & _PRIMARY
