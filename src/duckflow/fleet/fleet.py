"""What people and programs do with a fleet: submit, look, answer, cancel, retry, clean."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from duckflow.domain.errors import UsageError
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, new_state
from duckflow.fleet.checkout import Checkout, find_repository
from duckflow.fleet.database import FleetDatabase, address, answers, events, runs
from duckflow.fleet.questions import is_answer
from duckflow.fleet.runs import AGAIN, OVER, FleetRun, RunOptions, Runs

if TYPE_CHECKING:
    from dbos import DBOSClient, EnqueueOptions

QUEUE = "runs"
WORKFLOW = "request"
APPLICATION = "duckflow"
VERSION = "1"
"""Of the workflow, not of Duckflow: workers of all releases with this number go on with each other's runs."""


@contextmanager
def open_fleet(given: str | None = None) -> Generator["Fleet"]:
    """The fleet of a database: the one named, that of the environment, or the one at home."""
    database = FleetDatabase(address(given))
    try:
        database.migrate()
        yield Fleet(database)
    finally:
        database.close()


class Fleet:
    """Reads runs, and changes them in whole transactions together with DBOS's queue."""

    def __init__(self, database: FleetDatabase) -> None:
        self.runs = Runs(database)
        self._database = database

    def state(self, run: FleetRun) -> AgentState:
        """The run's session as its events tell it: with the open question, the plan, the verdict."""
        state = new_state(run.id)
        for recorded in self.runs.events(run.id):
            state = apply(state, recorded)
        return state

    def submit(self, folder: Path, request: str, options: RunOptions, count: int = 1) -> list[str]:
        """Queue a request for a repository, so many times; the runs' ids."""
        if not request.strip():
            raise UsageError("run.no_task")
        repository, base = find_repository(folder)
        ids = [secrets.token_hex(4) for _ in range(count)]
        with self._client() as client, self._database.begin() as connection:
            now = self._database.now
            for run in ids:
                wanted = {"id": run, "repository": repository, "base": base, "request": request.strip()}
                row = {**wanted, "options": options.model_dump_json(), "created": now, "updated": now}
                connection.execute(sa.insert(runs).values(**row))
                client.enqueue_in_transaction(connection, _queued(run, 1, repository), run, 1)
        return ids

    def answer(self, wanted: str, said: str, question: str | None = None) -> FleetRun:
        """Answer what a run asks. `question` is the hash of what was shown: another one is not answered."""
        run = self.runs.find(wanted)
        if run.state != "waiting" or (question is not None and question != run.question):
            raise UsageError("fleet.not_asked", run=run.id)
        if not is_answer(self.state(run), said):
            raise UsageError("fleet.unclear", run=run.id)
        with self._queued_again(run, runs.c.state == "waiting", "fleet.not_asked") as connection:
            row = {"run": run.id, "question": run.question, "text": said, "at": self._database.now}
            connection.execute(sa.insert(answers).values(**row))
        return run

    def cancel(self, wanted: str) -> FleetRun:
        """Stop a run; whoever works on it can write nothing more, and notices."""
        run = self.runs.find(wanted)
        with self._database.begin() as connection:
            stop = sa.update(runs).where(runs.c.id == run.id, runs.c.state.not_in(OVER))
            stopped = stop.values(state="cancelled", epoch=runs.c.epoch + 1, updated=self._database.now)
            if not connection.execute(stopped).rowcount:
                raise UsageError("fleet.is_over", run=run.id)
        return run

    def retry(self, wanted: str) -> FleetRun:
        """Go on with a run that failed or was cancelled, from where it was."""
        run = self.runs.find(wanted)
        seen = max((one.seq for one in self.runs.events(run.id)), default=0)
        ended = runs.c.state.in_(("failed", "cancelled"))
        with self._queued_again(run, ended, "fleet.nothing_to_retry", question=f"{AGAIN}:{seen}"):
            return run

    def clean(self, days: float) -> list[str]:
        """Forget what ended so long ago: copies and rows; branches stay. The ids of the runs."""
        gone = self.runs.over_for(days)
        ids = [run.id for run in gone]
        with self._database.begin() as connection:
            for table, column in ((events, events.c.run), (answers, answers.c.run), (runs, runs.c.id)):
                connection.execute(sa.delete(table).where(column.in_(ids)))
        with self._client() as client:
            for run in gone:
                Checkout(run).remove()
                client.delete_workflows([f"{run.id}.{leg}" for leg in range(1, run.leg + 1)])
        return ids

    @contextmanager
    def _queued_again(
        self, run: FleetRun, allowed: sa.ColumnElement[bool], refusal: str, **values: str
    ) -> Generator[sa.Connection]:
        """Let a worker go on with a run, if it still is as it was seen: of two who try, one does."""
        leg = run.leg + 1
        seen = sa.and_(runs.c.id == run.id, runs.c.leg == run.leg, runs.c.question == run.question, allowed)
        on = sa.update(runs).where(seen)
        with self._client() as client, self._database.begin() as connection:
            queued = on.values(state="queued", leg=leg, updated=self._database.now, **values)
            if not connection.execute(queued).rowcount:
                raise UsageError(refusal, run=run.id)
            client.enqueue_in_transaction(connection, _queued(run.id, leg, run.repository), run.id, leg)
            yield connection

    @contextmanager
    def _client(self) -> Generator["DBOSClient"]:
        from dbos import DBOSClient  # noqa: PLC0415 - a second, and not for looking

        client = DBOSClient(system_database_engine=self._database.engine, application_name=APPLICATION)
        try:
            yield client
        finally:
            client.destroy()


def _queued(run: str, leg: int, repository: str) -> "EnqueueOptions":
    return {
        "workflow_name": WORKFLOW,
        "queue_name": QUEUE,
        "workflow_id": f"{run}.{leg}",
        "app_version": VERSION,
        "queue_partition_key": repository,
    }
