"""Runs: one request each, from its submission to its branch. One worker works on a run at a time.

A worker that takes a run raises its `epoch`, which every write checks. So a previous worker that is still
alive can't write any more.
"""

import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from duckflow.domain.commands import ClientCommand, parse_command
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.modes import Mode
from duckflow.domain.state import AgentState
from duckflow.domain.work.objective import RequirementItem
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.fleet.database import FleetDatabase, answers, events, runs
from duckflow.loops.chat import EXIT_CODES
from duckflow.store.database.rows import decode, encode

RunState = Literal["queued", "working", "waiting", "done", "failed", "cancelled"]
UNDER_WAY: frozenset[RunState] = frozenset(("queued", "working"))
OVER: tuple[RunState, ...] = ("done", "failed", "cancelled")
MINUTES = 60.0
AGAIN = "again"
"""Start of a run's `question` after a retry; the number of the run's last event follows."""


class LostRun(Exception):
    """This process no longer owns the run, or can't reach the database, and must stop its work."""


class RunOptions(Frozen):
    """Settings for the work on a request."""

    mode: Mode | None = None
    model: str | None = None
    max_loops: int | None = None
    max_cost: float | None = None
    verify: str | None = None
    trust: bool = False
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = MINUTES
    """Minutes of work; waiting for answers does not count."""


class RunReport(Frozen):
    """Result of a run: its last reply, and the verdict on its requirements."""

    exit_code: int
    reply: str = ""
    error: str = ""
    satisfaction: float | None = None
    requirements: tuple[RequirementItem, ...] = ()


def report_of(state: AgentState, outcome: RequestOutcome) -> RunReport:
    """Return the report of a session whose request had this outcome."""
    request = state.request or state.finished
    objective = request.objective if request else None
    return RunReport(
        exit_code=EXIT_CODES[outcome],
        reply=state.reply,
        satisfaction=objective.satisfaction if objective and objective.evaluation else None,
        requirements=objective.requirements if objective else (),
    )


class FleetRun(Frozen):
    """One run and its current state."""

    id: str
    repository: str
    base: str
    request: str
    options: RunOptions
    state: RunState
    created: float
    updated: float
    leg: int
    """Number of times it was queued: at first, after each answer, and by `retry`."""
    epoch: int
    worked_s: float
    machine: str
    question: str
    """Hash of the question that waits for an answer."""
    outcome: str
    report: RunReport | None
    branch: str


_FIELDS = [runs.c[name] for name in FleetRun.model_fields]


class Runs:
    """Reads and writes the runs of a fleet."""

    def __init__(self, database: FleetDatabase) -> None:
        self.database = database

    def find(self, wanted: str) -> FleetRun:
        """Return the run whose id begins with this text."""
        with self.database.begin() as connection:
            like = runs.c.id.startswith(wanted, autoescape=True)
            found = connection.execute(sa.select(*_FIELDS).where(like).limit(2)).mappings().all()
        if len(found) != 1:
            raise UsageError("fleet.no_run" if not found else "fleet.many_runs", run=wanted)
        return _run(found[0])

    def listed(self, limit: int = 1000, state: RunState | None = None) -> list[FleetRun]:
        """Return runs, newest first; only those in `state` if it is given."""
        query = sa.select(*_FIELDS).order_by(runs.c.created.desc()).limit(limit)
        with self.database.begin() as connection:
            rows = connection.execute(query.where(runs.c.state == state) if state else query)
            return [_run(row) for row in rows.mappings()]

    def counts(self) -> dict[str, int]:
        """Return the number of runs by state."""
        query = sa.select(runs.c.state, sa.func.count().label("many")).group_by(runs.c.state)
        with self.database.begin() as connection:
            return {row.state: int(row.many) for row in connection.execute(query)}

    def events(self, run: str, after: int = 0) -> list[StoredEvent]:
        """Return the events of a run with a number above `after`, oldest first."""
        query = sa.select(events).where(events.c.run == run, events.c.seq > after).order_by(events.c.seq)
        with self.database.begin() as connection:
            rows = connection.execute(query).all()
        return [
            StoredEvent(seq=row.seq, at=datetime.fromisoformat(row.at), event=decode(row.body))
            for row in rows
        ]

    def patch(self, run: str) -> bytes:
        """Return the run's changes so far, in a form that git can apply to its base; may be empty."""
        with self.database.begin() as connection:
            packed = connection.scalar(sa.select(runs.c.patch).where(runs.c.id == run))
        return zlib.decompress(packed) if packed else b""

    def answer(self, run: str, question: str) -> ClientCommand | None:
        """Return the answer to a question; None while it is open."""
        query = sa.select(answers.c.text).where(answers.c.run == run, answers.c.question == question)
        with self.database.begin() as connection:
            found = connection.scalar(query)
        return parse_command(found) if found else None

    def take(self, machine: str, lease_s: float) -> FleetRun | None:
        """Take the oldest run that is queued or whose worker was silent for longer than the lease.

        Returns None if there is no such run. The result names the machine that worked on the run before.
        """
        silent = sa.and_(runs.c.state == "working", runs.c.updated < self.database.now - lease_s)
        waiting = sa.select(*_FIELDS).where(sa.or_(runs.c.state == "queued", silent))
        oldest = waiting.order_by(runs.c.created).limit(1).with_for_update(skip_locked=True)
        with self.database.begin() as connection:
            row = connection.execute(oldest).mappings().first()
            if row is None:
                return None
            run = replace(_run(row), epoch=row["epoch"] + 1, state="working")
            # SQLite has no row locks: another worker may have been faster.
            mine = sa.update(runs).where(runs.c.id == run.id, runs.c.epoch == row["epoch"])
            owned = mine.values(epoch=run.epoch, state=run.state, machine=machine, updated=self.database.now)
            return run if connection.execute(owned).rowcount else None

    def extend(self, run: FleetRun) -> bool:
        """Start the lease of a run again; return False if the run was lost."""
        with self.database.begin() as connection:
            mine = sa.update(runs).where(runs.c.id == run.id, runs.c.epoch == run.epoch)
            return connection.execute(mine.values(updated=self.database.now)).rowcount == 1

    def append(self, run: FleetRun, first: int, added: Sequence[Event]) -> None:
        """Store events. Raise LostRun if another worker owns the run now."""
        at = datetime.now(UTC).isoformat()
        rows = [
            {"run": run.id, "seq": seq, "at": at, "body": encode(event)}
            for seq, event in enumerate(added, start=first)
        ]
        with self._owned(run) as connection:
            connection.execute(sa.insert(events), rows)

    def note(self, run: FleetRun, **values: object) -> None:
        """Change columns of the run's row. Raise LostRun if another worker owns the run now."""
        if isinstance(patch := values.get("patch"), bytes):
            values["patch"] = zlib.compress(patch)
        with self._owned(run) as connection:
            stands = sa.update(runs).where(runs.c.id == run.id)
            connection.execute(stands.values(updated=self.database.now, **values))

    @contextmanager
    def _owned(self, run: FleetRun) -> Generator[sa.Connection]:
        """Open a transaction that is rolled back if the run has another owner by its end."""
        epoch = sa.select(runs.c.epoch).where(runs.c.id == run.id).with_for_update(read=True)
        try:
            with self.database.engine.begin() as connection:
                yield connection
                # Read the epoch after the write, which waited for other writers, so it can't change any more.
                if connection.scalar(epoch) != run.epoch:
                    raise LostRun
        except SQLAlchemyError as exc:
            raise LostRun from exc


def _run(row: sa.RowMapping) -> FleetRun:
    report = RunReport.model_validate_json(row["report"]) if row["report"] else None
    return FleetRun.model_validate(
        {**row, "options": RunOptions.model_validate_json(row["options"]), "report": report}
    )
