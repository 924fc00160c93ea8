"""Works through fifty runs in five repositories with four workers, under ten `kill -9`, and reads their logs.

    python bench/fleet_kills.py [--runs 50] [--repositories 5] [--workers 4] [--kills 10] [--postgres]

The workers are started as a user starts them. Every other kill hits the command of a run instead of a worker.
Each command asks for approval and appends a line to a file outside all copies. At the end, no command may
have run twice, every run must have ended, every unknown command must have been asked about, the limits must
have held all the time, and the logs must say who took each run, who took it over from whom, and its end.
"""

import argparse
import os
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import nullcontext, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from duckflow.domain.events import ActionFinished, ActionStarted, ConsultationRequested
from duckflow.fleet.fleet import Fleet, open_fleet
from duckflow.fleet.runs import OVER, FleetLimits, RunOptions
from duckflow.fleet.worker_log import run_log
from fakes.engine import decision, write_script
from fakes.fleet_drill import answer_to, postgres
from fakes.repository import make_repository

COMMANDS = 2
LEASE_S = 4
TOTAL, PER_REPOSITORY = 6, 2


class Bench:
    """The runs, the workers, and what happened to them."""

    def __init__(self, base: Path, url: str, given: argparse.Namespace) -> None:
        self.base, self.url, self.given = base, url, given
        self.ledger = base / "ledger"
        self.workers: list[subprocess.Popen[bytes]] = []
        self.abandoned: list[tuple[str, str]] = []  # run, and the killed worker that had it
        self.killed_workers = self.killed_commands = self.answers = self.started = 0
        self.wrong: list[str] = []
        self.most = Counter[str]()

    def submit(self, fleet: Fleet) -> None:
        """Queue all runs, over all repositories."""
        folders = [make_repository(self.base / f"repository{n}") for n in range(self.given.repositories)]
        fleet.runs.set_limits(FleetLimits(total=TOTAL, per_repository=PER_REPOSITORY))
        for number in range(self.given.runs):
            commands = [f"echo {number}-{step} >> {self.ledger}; sleep 1" for step in range(COMMANDS)]
            steps = [decision("", {"operation": "shell.run", "args": {"command": one}}) for one in commands]
            script = write_script(self.base / f"s{number}.jsonl", [*steps, *[decision("Done.")] * 30])
            options = RunOptions(model=f"scripted:{script}", max_loops=30)
            fleet.submit(folders[number % len(folders)], f"Work {number}", options)

    def work(self, fleet: Fleet) -> float:
        """Answer, kill and watch until every run has ended; return the seconds that took."""
        chance, began, due = random.Random(self.given.seed), time.monotonic(), 6
        while time.monotonic() - began < self.given.limit:
            self.restaff()
            listed = fleet.runs.listed()
            working = [one.repository for one in listed if one.state == "working"]
            self.most["total"] = max(self.most["total"], len(working))
            self.most["repository"] = max(self.most["repository"], *Counter(working).values(), 0)
            for run in (one for one in listed if one.state == "waiting"):
                fleet.answer(run.id, answer_to(fleet, run), run.question)
                self.answers += 1
            kills = self.killed_workers + self.killed_commands
            if kills < self.given.kills and self.answers >= due:
                done = self.kill_command() if kills % 2 else self.kill_worker(fleet, chance)
                due += chance.randint(4, 8) if done else 0
            if all(one.state in OVER for one in listed):
                break
            time.sleep(0.2)
        for one in self.workers:
            one.send_signal(signal.SIGTERM)
        for one in self.workers:
            one.wait()
        return time.monotonic() - began

    def restaff(self) -> None:
        """Start workers until there are enough."""
        self.workers = [one for one in self.workers if one.poll() is None]
        while len(self.workers) < self.given.workers:
            words = ("fleet", "worker", "--parallel", "2", "--lease", str(LEASE_S), "--database", self.url)
            with (self.base / f"worker{self.started}.log").open("wb") as log:
                self.workers.append(subprocess.Popen([sys.executable, "-m", "duckflow", *words], stderr=log))
            self.started += 1

    def kill_worker(self, fleet: Fleet, chance: random.Random) -> bool:
        """Kill a worker that works on a run, and note its runs."""
        busy = {one.worker for one in fleet.runs.listed() if one.state == "working"}
        victims = [one for one in self.workers if f"{socket.gethostname()}:{one.pid}" in busy]
        if not victims:
            return False
        victim = chance.choice(victims)
        victim.kill()
        victim.wait()
        self.killed_workers += 1
        name = f"{socket.gethostname()}:{victim.pid}"
        held = [one.id for one in fleet.runs.listed() if (one.worker, one.state) == (name, "working")]
        self.abandoned += [(run, name) for run in held]
        return True

    def kill_command(self) -> bool:
        """Kill a shell that a run has started."""
        copies = str(self.base / "fleet")
        for place in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                sleeps = (place / "comm").read_text() == "sleep\n"
                if sleeps and str((place / "cwd").readlink()).startswith(copies):
                    parent = (place / "stat").read_text().rpartition(")")[2].split()[1]
                    os.kill(int(parent), signal.SIGKILL)
                    self.killed_commands += 1
                    return True
        return False

    def check(self, fleet: Fleet) -> Counter[str]:
        """Compare the runs, the ledger and the logs; return counts."""
        ran = Counter(self.ledger.read_text().split())
        self.wrong += [f"{name} ran {times} times" for name, times in ran.items() if times > 1]
        counts = Counter[str]()
        if self.most["total"] > TOTAL or self.most["repository"] > PER_REPOSITORY:
            self.wrong.append(f"the limits did not hold: {self.most}")
        for run in fleet.runs.listed():
            counts[f"runs {run.state}"] += 1
            if run.state not in OVER:
                self.wrong.append(f"{run.id} did not end: {run.state}")
            names: dict[str, str] = {}
            unknown = asked = 0
            for event in (one.event for one in fleet.runs.events(run.id)):
                match event:
                    case ActionStarted(action=action) if "command" in action.args:
                        names[event.action_id] = str(action.args["command"]).split()[1]
                    case ActionFinished() if event.action_id in names:
                        name = names.pop(event.action_id)
                        counts[f"commands {event.outcome}"] += 1
                        unknown += event.outcome == "unknown"
                        if event.outcome == "ok" and ran[name] != 1:
                            self.wrong.append(f"{name} is recorded as ok and ran {ran[name]} times")
                    case ConsultationRequested(kind="unknown", consultation=one):
                        asked += str(one.findings[0].values["what"]).count("shell.run ")
                    case _:
                        pass
            counts["unknown asked about"] += asked
            self.wrong += [f"{name} of {run.id} has no end" for name in names.values()]
            if unknown != asked:
                self.wrong.append(f"{run.id}: {unknown} unknown, {asked} asked about")
            log = "\n".join(run_log(fleet.runs.logged(run.id), fleet.runs.events(run.id), run.id))
            self.check_log(run.id, run.epoch, log)
        return counts

    def check_log(self, run: str, epoch: int, log: str) -> None:
        """Check that the log of a run has a line for each worker that took it, and for its end."""
        (self.base / "logs" / f"{run}.log").write_text(log)
        taken = len(re.findall(r"takes the run", log))
        if taken != epoch:
            self.wrong.append(f"{run} was taken {epoch} times, its log says {taken}")
        for other in (name for one, name in self.abandoned if one == run):
            if f"over from {other}" not in log:
                self.wrong.append(f"the log of {run} does not say that it was taken over from {other}")
        if not re.search(r"(done|not done) after [0-9.]+ min", log.splitlines()[-1]):
            self.wrong.append(f"the log of {run} does not say how it ended: {log.splitlines()[-1]}")


def main() -> None:
    """Run it, and print the counts. Exit with code 1 if something was wrong."""
    parser = argparse.ArgumentParser()
    defaults = (
        ("runs", 50),
        ("repositories", 5),
        ("workers", 4),
        ("kills", 10),
        ("seed", 1),
        ("limit", 1800),
    )
    for name, default in defaults:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--keep", type=Path, help="an empty folder for logs and records, which stays")
    given = parser.parse_args()
    with nullcontext(given.keep) if given.keep else tempfile.TemporaryDirectory() as made:
        base = Path(made).resolve()
        for part in ("STATE", "CACHE", "FLEET", "CONFIG"):
            os.environ[f"DUCKFLOW_{part}_DIR"] = str(base / part.lower())
        os.environ["DUCKFLOW_LANGUAGE"] = "en"
        for folder in ("config", "logs"):
            (base / folder).mkdir(parents=True)
        (base / "config" / "config.toml").write_text('[shell]\nsandbox = "none"\n')
        server = postgres(base) if given.postgres else nullcontext(f"sqlite:///{base / 'fleet.db'}")
        with server as url, open_fleet(url) as fleet:
            bench = Bench(base, url, given)
            bench.submit(fleet)
            seconds = bench.work(fleet)
            counts = bench.check(fleet)
    kills = f"{bench.killed_workers} workers and {bench.killed_commands} commands killed"
    print(f"{'Postgres' if given.postgres else 'SQLite'}: {seconds:.0f} s, {kills}, {bench.answers} answers")
    print(f"  taken over: {len(bench.abandoned)}; most at once: {dict(bench.most)}; {dict(counts)}")
    print("\n".join(bench.wrong) or "  nothing ran twice, nothing was lost, every log is complete")
    sys.exit(1 if bench.wrong else 0)


if __name__ == "__main__":
    main()
