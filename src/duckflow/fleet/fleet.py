"""Interface of the fleet for people and programs: submit, read, answer, cancel, retry and delete runs."""

import secrets
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import sqlalchemy as sa

from duckflow.domain import commands
from duckflow.domain.errors import UsageError
from duckflow.domain.state import AgentState
from duckflow.fleet.checkout import find_repository, remove_checkout
from duckflow.fleet.database import FleetDatabase, address, answers, events, log, runs
from duckflow.fleet.questions import read_command
from duckflow.fleet.runs import AGAIN, OVER, FleetRun, RunOptions, Runs
from duckflow.fleet.worker_log import log_file


@contextmanager
def open_fleet(given: str | None = None) -> Generator["Fleet"]:
    """Open the fleet of a database: the given one, that of the environment, or the user's file."""
    database = FleetDatabase(address(given))
    try:
        database.migrate()
        yield Fleet(database)
    finally:
        database.close()


class Fleet:
    """Reads runs and changes their rows. Workers notice a change when they next read them."""

    def __init__(self, database: FleetDatabase) -> None:
        self.runs = Runs(database)
        self._database = database

    def state(self, run: FleetRun) -> AgentState:
        """Compute the state of the run's session from its events."""
        return self.runs.state(run.id)

    def submit(self, folder: Path, request: str, options: RunOptions, count: int = 1) -> list[str]:
        """Queue a request for a repository, `count` times; return the ids of the runs."""
        if not request.strip():
            raise UsageError("run.no_task")
        repository, base = find_repository(folder)
        ids = [secrets.token_hex(4) for _ in range(count)]
        with self._database.begin() as connection:
            now = self._database.now
            wanted = {"repository": repository, "base": base, "request": request.strip()}
            row = {**wanted, "options": options.model_dump_json(), "created": now, "updated": now}
            row |= {"priority": options.priority}
            for run in ids:
                connection.execute(sa.insert(runs).values(id=run, **row))
        return ids

    def answer(self, wanted: str, said: str, question: str | None = None) -> FleetRun:
        """Answer the question of a run in words; `question` is the hash of the question that was shown."""
        run = self.runs.find(wanted)
        if run.state != "waiting" or (question is not None and question != run.question):
            raise UsageError("fleet.not_asked", run=run.id)
        command = read_command(self.state(run), said)
        if command is None:
            raise UsageError("fleet.unclear", run=run.id)
        self._answer(run, command)
        return run

    def send(self, wanted: str, command: commands.ClientCommand) -> str:
        """Carry out a command on a run; return the reason if it is refused, as a catalogue key, else ""."""
        run = self.runs.find(wanted)
        if isinstance(command, commands.CancelWork):
            self.cancel(run.id)
            return ""
        if not isinstance(command, commands.AnswerShown | commands.ChooseShown):
            return "clients.not_offered"
        state = self.state(run)
        if run.state != "waiting":
            return "clients.stale"
        if state.question is not None:
            objection = commands.objection_to(command, state)
        elif isinstance(command, commands.AnswerShown) or command.question_hash != run.question:
            objection = "clients.stale"
        else:  # the run waits for a text of the user
            objection = "" if command.way.text.strip() else "clients.not_offered"
            command = commands.SayMessage(text=command.way.text)
        if not objection:
            self._answer(run, command)
        return objection

    def cancel(self, wanted: str) -> FleetRun:
        """Stop a run; its worker notices this and can't write any more."""
        run = self.runs.find(wanted)
        with self._database.begin() as connection:
            stop = sa.update(runs).where(runs.c.id == run.id, runs.c.state.not_in(OVER))
            stopped = stop.values(state="cancelled", epoch=runs.c.epoch + 1, updated=self._database.now)
            if not connection.execute(stopped).rowcount:
                raise UsageError("fleet.is_over", run=run.id)
        return run

    def retry(self, wanted: str) -> FleetRun:
        """Continue a run that failed or was cancelled."""
        run = self.runs.find(wanted)
        seen = max((one.seq for one in self.runs.events(run.id)), default=0)
        ended = runs.c.state.in_(("failed", "cancelled"))
        with self._database.begin() as connection:
            self._queue(connection, run, ended, "fleet.nothing_to_retry", question=f"{AGAIN}:{seen}")
        return run

    def clean(self, days: float) -> list[str]:
        """Delete the copies and rows of runs that ended long ago, but no branches; return the runs' ids."""
        long_ago = runs.c.updated <= self._database.now - days * 86_400
        with self._database.begin() as connection:
            ids = list(connection.scalars(sa.select(runs.c.id).where(runs.c.state.in_(OVER), long_ago)))
            for column in (events.c.run, answers.c.run, log.c.run, runs.c.id):
                connection.execute(sa.delete(column.table).where(column.in_(ids)))
        for run in ids:
            remove_checkout(run)
            log_file(run).unlink(missing_ok=True)
        return ids

    def _answer(self, run: FleetRun, command: commands.ClientCommand) -> None:
        answer = {"run": run.id, "question": run.question, "text": command.model_dump_json()}
        with self._database.begin() as connection:
            asked = sa.and_(runs.c.state == "waiting", runs.c.question == run.question)
            self._queue(connection, run, asked, "fleet.not_asked")
            connection.execute(sa.insert(answers).values(**answer, at=self._database.now))

    def _queue(
        self,
        connection: sa.Connection,
        run: FleetRun,
        allowed: sa.ColumnElement[bool],
        refusal: str,
        **values: str,
    ) -> None:
        """Queue a run if `allowed` still holds; of two concurrent callers, only one succeeds."""
        again = sa.update(runs).where(runs.c.id == run.id, allowed)
        queued = again.values(state="queued", leg=run.leg + 1, updated=self._database.now, **values)
        if not connection.execute(queued).rowcount:
            raise UsageError(refusal, run=run.id)
