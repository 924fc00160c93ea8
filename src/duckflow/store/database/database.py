"""The one SQLite file: private, durable, checked at open, repaired if it was damaged."""

import sqlite3
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path

from duckflow.domain.errors import UserError
from duckflow.domain.events import ErrorReported
from duckflow.store.database.connections import Check, DatabaseDamaged, connect
from duckflow.store.database.errors import is_damage, translated
from duckflow.store.database.migrations import Migrations
from duckflow.store.database.opening import alone, make_private, sibling_file, transaction
from duckflow.store.database.recovery import recover

CHEAP_CHECK = 10_000_000
"""Bytes up to which a file is checked at every open; about 1 ms for each million was measured."""

PATIENCE_S = 10.0
"""How long to wait for another process that is writing."""


class Database:
    """Opened once a process; may be used from any thread. `notices` say what happened at the opening."""

    def __init__(
        self,
        path: Path,
        *,
        patience_s: float = PATIENCE_S,
        steps: Migrations | None = None,
        rescue: Callable[[Path], ErrorReported] = recover,
    ) -> None:
        self.path = path
        self._steps = steps
        self._rescue = rescue
        self._lock = threading.RLock()
        self._through = True
        self._doubt = sibling_file(path, "-doubt")
        self.notices: tuple[ErrorReported, ...] = ()
        with translated(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with alone(path, patience_s):
                self._connection = self._open(patience_s)
                self._identity = _identity(path)

    def _open(self, patience_s: float) -> sqlite3.Connection:
        make_private(self.path)
        try:
            connection = connect(self.path, patience_s, check=self._check_due(), steps=self._steps)
        except DatabaseDamaged:
            self.notices = (self._rescue(self.path),)
            connection = connect(self.path, patience_s, steps=self._steps)
        self._doubt.unlink(missing_ok=True)
        return connection

    def _check_due(self) -> Check:
        """Thorough after a failure; quick where the last one did not close, or where it is cheap."""
        if self._doubt.exists():
            return "integrity_check"
        log = sibling_file(self.path, "-wal")
        unclean = log.exists() and log.stat().st_size > 0
        return "quick_check" if unclean or self.path.stat().st_size <= CHEAP_CHECK else None

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """One consistent view, whatever others write meanwhile."""
        with self._lock, translated(self.path), self._watched(), transaction(self._connection, "DEFERRED"):
            yield self._connection

    @contextmanager
    def write(self, *, through: bool = True) -> Generator[sqlite3.Connection]:
        """All of the changes made in the block, durably, or none. Not `through`: the end of this process
        can't undo them, a power cut may, until the next write that goes through takes them along."""
        with self._lock, translated(self.path), self._watched():
            if through != self._through:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if through else 'NORMAL'}")
                self._through = through
            with transaction(self._connection):
                yield self._connection

    @contextmanager
    def _watched(self) -> Generator[None]:
        """Write only to the file others will read, and have it checked next time if it turns out broken."""
        if _identity(self.path) != self._identity:
            raise UserError("store.moved", path=str(self.path))
        try:
            yield
        except sqlite3.DatabaseError as exc:
            if is_damage(exc):
                self._doubt.touch(mode=0o600)
            raise

    def version(self) -> int:
        """A number that is another one once somebody else has written."""
        with self._lock, translated(self.path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def fold_log(self) -> None:
        """Move what the log holds into the file, as far as no one else is using it."""
        with self._lock, translated(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Give the file back; the last one to close it folds its log in."""
        with self._lock:
            self._connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
