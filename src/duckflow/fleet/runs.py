"""The runs: one request each, from its submission to its branch. Rows in, rows out; every change is fenced.

A run is worked on by one process at a time. Who takes it up raises its `epoch`; whoever had it before, a
worker that was thought dead and is not, can write nothing any more.
"""

import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Annotated, Literal

import sqlalchemy as sa
from pydantic import Field
from sqlalchemy.exc import SQLAlchemyError

from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.frozen import Frozen
from duckflow.domain.modes import Mode
from duckflow.domain.state import AgentState
from duckflow.domain.work.objective import RequirementItem
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.fleet.database import FleetDatabase, answers, events, runs
from duckflow.loops.chat import EXIT_CODES
from duckflow.store.database.event_rows import decode, encode

RunState = Literal["queued", "working", "waiting", "done", "failed", "cancelled"]
UNDER_WAY: frozenset[RunState] = frozenset(("queued", "working"))
OVER: tuple[RunState, ...] = ("done", "failed", "cancelled")
MINUTES = 60.0
AGAIN = "again"
"""Stands in place of a question where a request that ended is tried once more, with the last event before."""


class LostRun(Exception):
    """This process does not own the run any more, or can't reach the database: it may do nothing further."""


class RunOptions(Frozen):
    """How a request is to be worked on."""

    mode: Mode | None = None
    model: str | None = None
    max_loops: int | None = None
    max_cost: float | None = None
    verify: str | None = None
    trust: bool = False
    minutes: Annotated[float, Field(gt=0, allow_inf_nan=False)] = MINUTES
    """Minutes of work; waiting for answers does not count."""


class RunReport(Frozen):
    """What came of a run: what it said last, and how its requirements were judged."""

    exit_code: int
    reply: str = ""
    error: str = ""
    satisfaction: float | None = None
    requirements: tuple[RequirementItem, ...] = ()


def report_of(state: AgentState, outcome: RequestOutcome) -> RunReport:
    """The report of a session whose request ended so."""
    request = state.request or state.finished
    objective = request.objective if request else None
    return RunReport(
        exit_code=EXIT_CODES[outcome],
        reply=state.reply,
        satisfaction=objective.satisfaction if objective and objective.evaluation else None,
        requirements=objective.requirements if objective else (),
    )


class FleetRun(Frozen):
    """One run, as it stands."""

    id: str
    repository: str
    base: str
    request: str
    options: RunOptions
    state: RunState
    created: float
    updated: float
    leg: int
    """How often it was queued: at first, after each answer, and when it is tried again."""
    epoch: int
    worked_s: float
    machine: str
    question: str
    """The hash of the question it waits for an answer to."""
    outcome: str
    report: RunReport | None
    branch: str


_FIELDS = [runs.c[name] for name in FleetRun.model_fields]


class Runs:
    """Reads and writes the runs of a fleet."""

    def __init__(self, database: FleetDatabase) -> None:
        self.database = database

    def find(self, wanted: str) -> FleetRun:
        """The run whose id begins so."""
        with self.database.begin() as connection:
            like = runs.c.id.startswith(wanted, autoescape=True)
            found = connection.execute(sa.select(*_FIELDS).where(like).limit(2)).mappings().all()
        if len(found) != 1:
            raise UsageError("fleet.no_run" if not found else "fleet.many_runs", run=wanted)
        return _run(found[0])

    def listed(self, limit: int = 1000, state: RunState | None = None) -> list[FleetRun]:
        """The newest runs, all or those in one state, newest first."""
        query = sa.select(*_FIELDS).order_by(runs.c.created.desc()).limit(limit)
        with self.database.begin() as connection:
            rows = connection.execute(query.where(runs.c.state == state) if state else query)
            return [_run(row) for row in rows.mappings()]

    def over_for(self, days: float) -> list[FleetRun]:
        """Those that ended so long ago."""
        long_ago = runs.c.updated <= self.database.now - days * 86_400
        with self.database.begin() as connection:
            rows = connection.execute(sa.select(*_FIELDS).where(runs.c.state.in_(OVER), long_ago))
            return [_run(row) for row in rows.mappings()]

    def counts(self) -> dict[str, int]:
        """How many are in each state there is a run in."""
        query = sa.select(runs.c.state, sa.func.count().label("many")).group_by(runs.c.state)
        with self.database.begin() as connection:
            return {row.state: int(row.many) for row in connection.execute(query)}

    def events(self, run: str, after: int = 0) -> list[StoredEvent]:
        """What happened in a run, oldest first; only what came after an event, if one is named."""
        query = sa.select(events).where(events.c.run == run, events.c.seq > after).order_by(events.c.seq)
        with self.database.begin() as connection:
            rows = connection.execute(query).all()
        return [
            StoredEvent(seq=row.seq, at=datetime.fromisoformat(row.at), event=decode(row.body))
            for row in rows
        ]

    def patch(self, run: str) -> bytes:
        """What the run has changed so far, as git can apply it to its base; empty for nothing."""
        with self.database.begin() as connection:
            packed = connection.scalar(sa.select(runs.c.patch).where(runs.c.id == run))
        return zlib.decompress(packed) if packed else b""

    def answer(self, run: str, question: str) -> str | None:
        """What was answered to a question."""
        query = sa.select(answers.c.text).where(answers.c.run == run, answers.c.question == question)
        with self.database.begin() as connection:
            return connection.scalar(query)

    def take(self, run: str, leg: int, machine: str) -> FleetRun | None:
        """Own the run from now on; it, with the machine it was on before. None if there is nothing to do."""
        wanted = sa.and_(runs.c.id == run, runs.c.leg == leg, runs.c.state.in_(UNDER_WAY))
        with self.database.begin() as connection:
            raised = sa.update(runs).where(wanted).values(epoch=runs.c.epoch + 1, state="working")
            if not connection.execute(raised).rowcount:
                return None
            row = connection.execute(sa.select(*_FIELDS).where(runs.c.id == run)).mappings().one()
            here = sa.update(runs).where(runs.c.id == run)
            connection.execute(here.values(machine=machine, updated=self.database.now))
        return _run(row)

    def append(self, run: FleetRun, first: int, added: Sequence[Event]) -> None:
        """Store events before anything else happens; raises LostRun if the run is somebody else's now."""
        at = datetime.now(UTC).isoformat()
        rows = [
            {"run": run.id, "seq": seq, "at": at, "body": encode(event)}
            for seq, event in enumerate(added, start=first)
        ]
        with self._owned(run) as connection:
            connection.execute(sa.insert(events), rows)

    def note(self, run: FleetRun, **values: object) -> None:
        """Write down how the run stands; raises LostRun if it is somebody else's now."""
        if isinstance(patch := values.get("patch"), bytes):
            values["patch"] = zlib.compress(patch)
        with self._owned(run) as connection:
            stands = sa.update(runs).where(runs.c.id == run.id)
            connection.execute(stands.values(updated=self.database.now, **values))

    @contextmanager
    def _owned(self, run: FleetRun) -> Generator[sa.Connection]:
        """A transaction that is undone if the run has another owner by its end."""
        epoch = sa.select(runs.c.epoch).where(runs.c.id == run.id).with_for_update(read=True)
        try:
            with self.database.engine.begin() as connection:
                yield connection
                # After the write, which waits for other writers: what is read now holds until the end.
                if connection.scalar(epoch) != run.epoch:
                    raise LostRun
        except SQLAlchemyError as exc:
            raise LostRun from exc


def _run(row: sa.RowMapping) -> FleetRun:
    report = RunReport.model_validate_json(row["report"]) if row["report"] else None
    return FleetRun.model_validate(
        {**row, "options": RunOptions.model_validate_json(row["options"]), "report": report}
    )
