"""The fleet's database, next to the tables of DBOS: SQLite at home, Postgres across machines.

fleet_runs      one row a run: what is wanted, how far it is, what came of it
fleet_events    the events of each run's session, as in the log at home
fleet_answers   what was answered to which question, once
fleet_workers   who is alive
fleet_schema    for which release the tables were made
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from duckflow.config.places import state_dir
from duckflow.domain.errors import UsageError, UserError
from duckflow.fleet import FILE, VARIABLE

PATIENCE_MS = 30_000
SCHEMA = 1
"""Raised when a table here changes."""
_LOCK = 0x6475636B
"""The number of the advisory lock under which Postgres is migrated."""
_SQLITE_NEEDED = (3, 35)
"""The first version with RETURNING, by which DBOS knows which runs it took."""
_SQLITE_WITH_CLOCK = (3, 42)
"""The first version that knows `unixepoch('subsec')`, by which DBOS writes down when something happened."""

meta = sa.MetaData()
runs = sa.Table(
    "fleet_runs",
    meta,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("repository", sa.String, nullable=False),
    sa.Column("base", sa.String, nullable=False),
    sa.Column("request", sa.Text, nullable=False),
    sa.Column("options", sa.Text, nullable=False),
    sa.Column("state", sa.String, nullable=False, index=True, default="queued"),
    sa.Column("created", sa.Float, nullable=False),
    sa.Column("updated", sa.Float, nullable=False),
    sa.Column("leg", sa.Integer, nullable=False, default=1),
    sa.Column("epoch", sa.Integer, nullable=False, default=0),
    sa.Column("worked_s", sa.Float, nullable=False, default=0.0),
    sa.Column("machine", sa.String, nullable=False, default=""),
    sa.Column("question", sa.String, nullable=False, default=""),
    sa.Column("outcome", sa.String, nullable=False, default=""),
    sa.Column("report", sa.Text, nullable=False, default=""),
    sa.Column("branch", sa.String, nullable=False, default=""),
    sa.Column("patch", sa.LargeBinary, nullable=True),
)
events = sa.Table(
    "fleet_events",
    meta,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("at", sa.String, nullable=False),
    sa.Column("body", sa.Text, nullable=False),
)
answers = sa.Table(
    "fleet_answers",
    meta,
    sa.Column("run", sa.String, primary_key=True),
    sa.Column("question", sa.String, primary_key=True),
    sa.Column("text", sa.Text, nullable=False),
    sa.Column("at", sa.Float, nullable=False),
)
workers = sa.Table(
    "fleet_workers",
    meta,
    sa.Column("id", sa.String, primary_key=True),
    sa.Column("beat", sa.Float, nullable=False),
    sa.Column("dead", sa.Boolean, nullable=False),
)
schema = sa.Table("fleet_schema", meta, sa.Column("version", sa.String, primary_key=True))


def _schema_version() -> str:
    return f"{SCHEMA} dbos {metadata.version('dbos')}"


def address(given: str | None) -> str:
    """The database's address: as named, as in the environment, or the file in the state directory."""
    named = given or os.environ.get(VARIABLE) or f"sqlite:///{state_dir() / FILE}"
    try:
        backend = sa.make_url(named).get_backend_name()
    except (ArgumentError, NoSuchModuleError) as exc:
        raise UsageError("fleet.bad_database") from exc
    if backend not in ("sqlite", "postgresql"):
        raise UsageError("fleet.bad_database")
    if backend == "sqlite" and sqlite3.sqlite_version_info < _SQLITE_NEEDED:
        needed = ".".join(map(str, _SQLITE_NEEDED))
        raise UserError("fleet.old_sqlite", found=sqlite3.sqlite_version, needed=needed)
    return named


class FleetConnection(sqlite3.Connection):
    """Connection to SQLite on which the tables and statements of DBOS work with older versions as well.

    From Python 3.12 on both ask `unixepoch('subsec')` for the time, and the tables keep doing so.
    """

    def __init__(self, *arguments: Any, **options: Any) -> None:  # noqa: ANN401 - as its base has them
        super().__init__(*arguments, **options)
        if sqlite3.sqlite_version_info < _SQLITE_WITH_CLOCK:
            self.create_function("unixepoch", 1, _unix_time)


def _unix_time(precision: str) -> float:
    """Seconds since 1970 to the millisecond, as newer versions of SQLite give them."""
    if precision != "subsec":
        raise ValueError(precision)
    return time.time_ns() // 1_000_000 / 1_000


class FleetDatabase:
    """Connections to the fleet's tables. Every change is one transaction."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if not self.sqlite:
            parsed = parsed.set(drivername="postgresql+psycopg")
        self.url = url
        self.engine_options: dict[str, Any] = {}
        """For each engine that uses this database, also the one that DBOS creates in a worker."""
        if self.sqlite:
            self.engine_options = {"connect_args": {"factory": FleetConnection}}
        # Few connections: with hundreds of workers they are what a server runs out of first.
        pool = {"pool_pre_ping": not self.sqlite, "pool_size": 2, "max_overflow": 3}
        self.engine = sa.create_engine(parsed, **pool, **self.engine_options)
        if self.sqlite:
            event.listen(self.engine, "connect", _set_up_sqlite)

    @contextmanager
    def begin(self) -> Generator[sa.Connection]:
        """One transaction; what is wrong with the database is told in a sentence."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except OperationalError as exc:
            reason = str(exc.orig).strip().partition("\n")[0]
            raise UserError("fleet.no_database", reason=reason) from exc

    @property
    def now(self) -> sa.ColumnElement[float]:
        """Seconds by the database's clock, where machines share one."""
        if self.sqlite:
            return sa.literal(time.time())
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)

    def migrate(self) -> None:
        """Bring all tables up to date, DBOS's too; of all who start at once only one does it."""
        if self._is_ready():
            return
        from dbos import DBOS  # noqa: PLC0415 - seconds, and only the first time

        with self._alone():
            if self._is_ready():
                return
            DBOS.migrate(self.url)
            with self.begin() as connection:
                meta.create_all(connection)
                connection.execute(sa.delete(schema))
                connection.execute(sa.insert(schema).values(version=_schema_version()))

    def _is_ready(self) -> bool:
        """Whether all tables are those of this release; written down as the last step."""
        with self.begin() as connection:
            there = sa.inspect(connection).has_table(schema.name)
            return there and connection.scalar(sa.select(schema.c.version)) == _schema_version()

    @contextmanager
    def _alone(self) -> Generator[None]:
        if self.sqlite:
            with Path(f"{self.engine.url.database}.lock").open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                yield
            return
        with self.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            # Tried again and again: who waits inside a statement would hold up the building of indexes.
            while not connection.scalar(sa.select(sa.func.pg_try_advisory_lock(_LOCK))):
                time.sleep(0.2)
            try:
                yield
            finally:
                connection.execute(sa.select(sa.func.pg_advisory_unlock(_LOCK)))

    def close(self) -> None:
        """Give the connections back."""
        self.engine.dispose()


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """As DBOS has it: writers wait for each other. WAL lets others read meanwhile."""
    connection.isolation_level = "IMMEDIATE"
    connection.execute(f"PRAGMA busy_timeout={PATIENCE_MS}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
