"""Opens the database file safely: private from the start, and by one process at a time."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PAUSE_S = 0.02


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
