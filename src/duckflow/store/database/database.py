"""The SQLite file: private, durable, checked when opened, and repaired if damaged."""

import sqlite3
import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from duckflow.domain.errors import UserError
from duckflow.domain.events import ErrorReported
from duckflow.store.database import connections
from duckflow.store.database.connections import connect, sibling_file, transaction, translated
from duckflow.store.database.migrations import MIGRATIONS, Migrations
from duckflow.store.database.recovery import recover

CHEAP_CHECK = 10_000_000
"""Size in bytes up to which a file is checked each time it is opened. 1 MB takes about 1 ms."""

PATIENCE_S = 10.0
"""Time in seconds to wait while another process is writing."""


class Database:
    """A database, opened once per process and usable by any thread. `notices` are problems at opening."""

    def __init__(
        self,
        path: Path,
        *,
        patience_s: float = PATIENCE_S,
        steps: Migrations = MIGRATIONS,
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
            with connections.alone(path, patience_s):
                self._connection = self._open(patience_s)
                self._identity = _identity(path)

    def _open(self, patience_s: float) -> sqlite3.Connection:
        connections.make_private(self.path)
        try:
            connection = connect(self.path, patience_s, check=self._check_due(), steps=self._steps)
        except connections.DatabaseDamaged:
            self.notices = (self._rescue(self.path),)
            connection = connect(self.path, patience_s, steps=self._steps)
        self._doubt.unlink(missing_ok=True)
        return connection

    def _check_due(self) -> connections.Check:
        """Choose a check: thorough after an error, quick after an unclean exit or for a small file."""
        if self._doubt.exists():
            return "integrity_check"
        log = sibling_file(self.path, "-wal")
        unclean = log.exists() and log.stat().st_size > 0
        return "quick_check" if unclean or self.path.stat().st_size <= CHEAP_CHECK else None

    @contextmanager
    def read(self) -> Generator[sqlite3.Connection]:
        """Read from one consistent state of the database, whatever others write meanwhile."""
        with self._lock, translated(self.path), self._watched(), transaction(self._connection, "DEFERRED"):
            yield self._connection

    def query(self, sql: str, parameters: Sequence[object] | Mapping[str, object] = ()) -> list[Any]:
        """Return all rows of a query."""
        with self.read() as connection:
            return connection.execute(sql, parameters).fetchall()

    @contextmanager
    def write(self, *, through: bool = True) -> Generator[sqlite3.Connection]:
        """Apply all changes made in the block, or none. Without `through`, a power cut may lose them."""
        with self._lock, translated(self.path), self._watched():
            if through != self._through:
                self._connection.execute(f"PRAGMA synchronous = {'FULL' if through else 'NORMAL'}")
                self._through = through
            with transaction(self._connection):
                yield self._connection

    @contextmanager
    def _watched(self) -> Generator[None]:
        """Refuse a file that was moved. If the file proves damaged, mark it for a check when opened next."""
        if _identity(self.path) != self._identity:
            raise UserError("store.moved", path=str(self.path))
        try:
            yield
        except sqlite3.DatabaseError as exc:
            if connections.is_damage(exc):
                self._doubt.touch(mode=0o600)
            raise

    def version(self) -> int:
        """Return a counter that changes whenever another process writes to the database."""
        with self._lock, translated(self.path):
            return int(self._connection.execute("PRAGMA data_version").fetchone()[0])

    def fold_log(self) -> None:
        """Move the write-ahead log into the database file, as far as other processes allow it."""
        with self._lock, translated(self.path):
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Close the file. The last process that closes it merges the write-ahead log into it."""
        with self._lock:
            self._connection.close()


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino
