"""Runs: one request each, from its submission to its branch. One worker works on a run at a time.

A worker that takes a run raises its `epoch`, which every write checks. So a previous worker that is still
alive can't write any more.
"""

import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import reduce
from typing import Annotated

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from duckflow.domain.commands import ClientCommand, parse_command
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.modes import Mode
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, new_state
from duckflow.domain.work.objective import RequirementItem
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.fleet import RunState
from duckflow.fleet.database import FleetDatabase, answers, events, limits, log, runs
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES
from duckflow.store.database.rows import decode, encode

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
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Runs with a higher number are taken first."""


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
    worker: str
    """Worker that works on the run, or did so last."""
    question: str
    """Hash of the question that waits for an answer."""
    outcome: str
    report: RunReport | None
    branch: str
    cost_usd: float | None
    """Cost of its model calls so far; None if no price is known."""


class RunFilter(Frozen):
    """Selects the runs to list; an empty field fits every run."""

    state: RunState | None = None
    repository: str = ""
    """Its path, or the end of it, such as its name."""
    words: str = ""
    """Words of the request."""


class FleetLimits(Frozen):
    """Limits that all workers of a fleet share; 0 stands for none."""

    total: int = 0
    """Runs at the same time."""
    per_repository: int = 0
    """Runs at the same time in one repository."""
    cost_usd: float = 0.0
    """Cost of all runs together; beyond it, no run makes another step."""


class LogLine(Frozen):
    """One line of the fleet's log."""

    run: str
    at: float
    text: str


_ALL = RunFilter()
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

    def listed(self, limit: int = 1000, wanted: RunFilter = _ALL) -> list[FleetRun]:
        """Return runs that fit the filter, newest first."""
        query = sa.select(*_FIELDS).order_by(runs.c.created.desc()).limit(limit)
        if wanted.state:
            query = query.where(runs.c.state == wanted.state)
        if name := wanted.repository.rstrip("/"):
            ends = runs.c.repository.endswith(f"/{name.lstrip('/')}", autoescape=True)
            query = query.where(sa.or_(runs.c.repository == name, ends))
        for word in wanted.words.split():
            query = query.where(runs.c.request.icontains(word, autoescape=True))
        with self.database.begin() as connection:
            return [_run(row) for row in connection.execute(query).mappings()]

    def limits(self) -> FleetLimits:
        """Return the limits that all workers share."""
        with self.database.begin() as connection:
            return _limits(connection)

    def set_limits(self, wanted: FleetLimits) -> None:
        """Replace the limits that all workers share."""
        rows = [{"name": name, "value": value} for name, value in wanted.model_dump().items()]
        with self.database.begin_alone() as connection:
            connection.execute(sa.delete(limits))
            connection.execute(sa.insert(limits), rows)

    def spent_usd(self) -> float:
        """Return the cost of all runs together, as far as prices are known."""
        with self.database.begin() as connection:
            return _spent_usd(connection)

    def log(self, run: str, said: str) -> None:
        """Store a line about a run, or about a worker if `run` is empty."""
        with self.database.begin() as connection:
            _log(connection, self.database, run, said)

    def logged(self, run: str | None = None, limit: int = 1000) -> list[LogLine]:
        """Return the newest lines about a run, or about all runs and workers; oldest first."""
        query = sa.select(log.c.run, log.c.at, log.c.text).order_by(log.c.number.desc()).limit(limit)
        with self.database.begin() as connection:
            rows = connection.execute(query if run is None else query.where(log.c.run == run)).mappings()
            return [LogLine.model_validate(dict(row)) for row in reversed(rows.all())]

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

    def state(self, run: str) -> AgentState:
        """Compute the state of a run's session from its events."""
        return reduce(apply, self.events(run), new_state(run))

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

    def take(self, machine: str, lease_s: float, worker: str = "") -> FleetRun | None:
        """Take the most urgent run that is queued or whose worker was silent for longer than the lease.

        Returns None if there is no such run, or if the limits allow no further one. The result says which
        state the run had, and which machine and worker had worked on it.
        """
        with self.database.begin() as connection:  # an idle worker only reads
            if connection.execute(_next_run(self.database, lease_s, _limits(connection))).first() is None:
                return None
        with self.database.begin_alone() as connection:
            allowed = _limits(connection)
            # A row that someone changes at this moment, for example to cancel the run, is left for later.
            query = _next_run(self.database, lease_s, allowed).with_for_update(skip_locked=True)
            row = connection.execute(query).mappings().first()
            if row is None or 0 < allowed.cost_usd <= _spent_usd(connection):
                return None
            run = replace(_run(row), epoch=row["epoch"] + 1)
            owned = {"epoch": run.epoch, "state": "working", "machine": machine, "worker": worker}
            owned |= {"updated": self.database.now, "notice_due": None}
            connection.execute(sa.update(runs).where(runs.c.id == run.id).values(owned))
            _log(connection, self.database, run.id, taken_text(run, worker))
            return run

    def extend(self, run: FleetRun, **values: float | None) -> bool:
        """Start the lease of a run again, and note these values; return False if the run was lost."""
        with self.database.begin() as connection:
            mine = sa.update(runs).where(runs.c.id == run.id, runs.c.epoch == run.epoch)
            return connection.execute(mine.values(updated=self.database.now, **values)).rowcount == 1

    def append(self, run: FleetRun, first: int, added: Sequence[Event]) -> None:
        """Store events. Raise LostRun if another worker owns the run now."""
        at = datetime.now(UTC).isoformat()
        rows = [
            {"run": run.id, "seq": seq, "at": at, "body": encode(event)}
            for seq, event in enumerate(added, start=first)
        ]
        with self._owned(run) as connection:
            connection.execute(sa.insert(events), rows)

    def note(self, run: FleetRun, values: Mapping[str, object], said: str = "") -> None:
        """Change columns of the run's row, and log a line. Raise LostRun if another worker owns it now."""
        patch = values.get("patch")
        packed = {"patch": zlib.compress(patch)} if isinstance(patch, bytes) else {}
        with self._owned(run) as connection:
            stands = sa.update(runs).where(runs.c.id == run.id)
            connection.execute(stands.values({"updated": self.database.now, **values, **packed}))
            if said:
                _log(connection, self.database, run.id, said)

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


def _next_run(database: FleetDatabase, lease_s: float, allowed: FleetLimits) -> sa.Select[tuple[object, ...]]:
    """Return the query for the run to take next: silent workers' runs already count as being worked on."""
    silent = sa.and_(runs.c.state == "working", runs.c.updated < database.now - lease_s)
    queued = runs.c.state == "queued"
    busy = runs.alias("busy")
    working = sa.select(sa.func.count()).select_from(busy).where(busy.c.state == "working")
    if allowed.total:
        queued = sa.and_(queued, working.scalar_subquery() < allowed.total)
    if allowed.per_repository:
        there = working.where(busy.c.repository == runs.c.repository).correlate(runs).scalar_subquery()
        queued = sa.and_(queued, there < allowed.per_repository)
    most_urgent = runs.c.priority.desc(), runs.c.created
    return sa.select(*_FIELDS).where(sa.or_(queued, silent)).order_by(*most_urgent).limit(1)


def taken_text(run: FleetRun, worker: str) -> str:
    """Return the line of the log for a run, as it was before this worker took it."""
    if run.state == "working":
        return text("fleet.log.takes_over", worker=worker, other=run.worker or run.machine)
    return text("fleet.log.takes", worker=worker, turn=run.leg)


def _log(connection: sa.Connection, database: FleetDatabase, run: str, said: str) -> None:
    connection.execute(sa.insert(log).values(run=run, at=database.now, text=said))


def _limits(connection: sa.Connection) -> FleetLimits:
    rows = connection.execute(sa.select(limits.c.name, limits.c.value)).all()
    return FleetLimits.model_validate({row.name: row.value for row in rows})


def _spent_usd(connection: sa.Connection) -> float:
    return connection.scalar(sa.select(sa.func.sum(runs.c.cost_usd))) or 0.0


def _run(row: sa.RowMapping) -> FleetRun:
    report = RunReport.model_validate_json(row["report"]) if row["report"] else None
    return FleetRun.model_validate(
        {**row, "options": RunOptions.model_validate_json(row["options"]), "report": report}
    )
