"""Around the opening of the file: private from its first byte, one opener at a time, signs of a bad end."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

_PAUSE_S = 0.02


def sibling_file(path: Path, suffix: str) -> Path:
    """The file that belongs to this one, as SQLite names its own."""
    return path.with_name(path.name + suffix)


def make_private(path: Path) -> None:
    """Create the file, or close it to others. SQLite gives the files next to it the same mode.

    A file that is there is not opened: closing it again would take the locks of every other connection that
    this process has to it, and others would fold away the log under them.
    """
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    except FileExistsError:
        if path.stat().st_mode & 0o077:
            path.chmod(0o600)


@contextmanager
def alone(path: Path, patience_s: float) -> Generator[None]:
    """Hold off all others who want to open, check or mend this file."""
    lock = os.open(sibling_file(path, "-lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _wait_for(lock, patience_s)
        yield
    finally:
        os.close(lock)


def _wait_for(lock: int, patience_s: float) -> None:
    end = time.monotonic() + patience_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as exc:
            if time.monotonic() >= end:
                busy = sqlite3.OperationalError("another process is opening the file")
                busy.sqlite_errorcode = sqlite3.SQLITE_BUSY
                raise busy from exc
            time.sleep(_PAUSE_S)
        else:
            return


@contextmanager
def transaction(connection: sqlite3.Connection, kind: str = "IMMEDIATE") -> Generator[None]:
    """IMMEDIATE waits for the other writers at the beginning; DEFERRED is for a view while others write."""
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite has rolled back by itself after some errors, a full disk among them.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
