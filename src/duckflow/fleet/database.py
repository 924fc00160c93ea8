"""Tables of the fleet: SQLite on one machine, Postgres across machines.

fleet_runs      one row per run: its request, state and result; also the queue of the workers
fleet_events    events of each run's session, as in the log of a machine
fleet_answers   one answer to each question
fleet_log       what workers did, in words
fleet_limits    limits that all workers share
fleet_schema    version of these tables
"""

import os
import sqlite3
import time
from collections.abc import Generator
from contextlib import contextmanager

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, OperationalError

from duckflow.config.places import state_dir
from duckflow.domain.errors import UsageError, UserError
from duckflow.fleet import FILE, VARIABLE

PATIENCE_MS = 30_000
SCHEMA = "3"
"""Version of the tables; increase it when a table changes."""
_LOCK = 0x6475636B
"""Number of the advisory lock under which Postgres is migrated and runs are taken."""

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
    sa.Column("worker", sa.String, nullable=False, server_default=""),
    sa.Column("priority", sa.Integer, nullable=False, server_default="0"),
    sa.Column("cost_usd", sa.Float, nullable=True),
    sa.Column("notice_due", sa.Float, nullable=True),
    sa.Column("notice_tries", sa.Integer, nullable=False, server_default="0"),
    sa.Column("notice_told", sa.String, nullable=False, server_default=""),
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
log = sa.Table(
    "fleet_log",
    meta,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run", sa.String, nullable=False, index=True),
    sa.Column("at", sa.Float, nullable=False),
    sa.Column("text", sa.Text, nullable=False),
)
limits = sa.Table(
    "fleet_limits",
    meta,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.Float, nullable=False),
)
schema = sa.Table("fleet_schema", meta, sa.Column("version", sa.String, primary_key=True))


def address(given: str | None) -> str:
    """Return the database's address: the given one, that of the environment, or the user's file."""
    named = given or os.environ.get(VARIABLE) or f"sqlite:///{state_dir() / FILE}"
    try:
        backend = sa.make_url(named).get_backend_name()
    except (ArgumentError, NoSuchModuleError) as exc:
        raise UsageError("fleet.bad_database") from exc
    if backend not in ("sqlite", "postgresql"):
        raise UsageError("fleet.bad_database")
    return named


class FleetDatabase:
    """Connections to the fleet's tables. Every change is one transaction."""

    def __init__(self, url: str) -> None:
        parsed = sa.make_url(url)
        self.sqlite = parsed.get_backend_name() == "sqlite"
        if not self.sqlite:
            parsed = parsed.set(drivername="postgresql+psycopg")
        # Few connections: with hundreds of workers, a server runs out of these first.
        self.engine = sa.create_engine(parsed, pool_pre_ping=not self.sqlite, pool_size=2, max_overflow=3)
        if self.sqlite:
            event.listen(self.engine, "connect", _set_up_sqlite)

    @contextmanager
    def begin(self) -> Generator[sa.Connection]:
        """Run the block in one transaction. Raise UserError if the database can't be used."""
        try:
            with self.engine.begin() as connection:
                yield connection
        except OperationalError as exc:
            reason = str(exc.orig).strip().partition("\n")[0]
            raise UserError("fleet.no_database", reason=reason) from exc

    @contextmanager
    def begin_alone(self) -> Generator[sa.Connection]:
        """Run the block in a transaction while no other block of this kind runs."""
        lock = "BEGIN IMMEDIATE" if self.sqlite else f"SELECT pg_advisory_xact_lock({_LOCK})"
        with self.begin() as connection:
            connection.exec_driver_sql(lock)
            yield connection

    @property
    def now(self) -> sa.ColumnElement[float]:
        """Seconds since 1970, by the clock of the database if several machines share it."""
        if self.sqlite:
            return sa.literal(time.time())
        return sa.cast(sa.extract("epoch", sa.func.clock_timestamp()), sa.Double)

    def migrate(self) -> None:
        """Create the tables. If several processes start together, one creates them."""
        with self.begin() as connection:
            found = sa.inspect(connection).has_table(schema.name)
            if found and connection.scalar(sa.select(schema.c.version)) == SCHEMA:
                return
        with self.begin_alone() as connection:
            meta.create_all(connection)
            self._add_columns(connection)
            connection.execute(sa.delete(schema))
            connection.execute(sa.insert(schema).values(version=SCHEMA))

    def _add_columns(self, connection: sa.Connection) -> None:
        """Add the columns that the table of runs of an earlier version lacks."""
        known = {one["name"] for one in sa.inspect(connection).get_columns(runs.name)}
        for column in runs.columns:
            if column.name not in known:
                written = sa.schema.CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {runs.name} ADD COLUMN {written}")

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()


def _set_up_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    """Make a writer wait for other writers, and let readers read during a write (WAL)."""
    connection.isolation_level = "IMMEDIATE"
    connection.execute(f"PRAGMA busy_timeout={PATIENCE_MS}")
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
