"""`duckflow run` with a fault at a chosen system call (strace), and what must hold afterwards."""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import uuid
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from duckflow.domain.events import ActionFinished, ActionStarted, Recovered
from duckflow.domain.files.changes import FileChange
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions
from fakes.engine import action, decision, engine, write_script

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "unlink",
    "unlinkat",
    "ftruncate",
    "mkdirat",
    "fchmod",
)
"""System calls by which something on the disk changes."""

ONE_POOL_THREAD = """
import concurrent.futures, functools, runpy
pool = concurrent.futures.ThreadPoolExecutor
pool.__init__ = functools.partialmethod(pool.__init__, max_workers=1)
runpy.run_module("duckflow", run_name="__main__", alter_sys=True)
"""
"""With one thread for what blocks: strace counts calls by thread, so the n-th is the same in every run."""

TIME_LIMIT_S = 120
_CALL = re.compile(r"^(\d+) +(\w+)\(")

FILES = {f"old{number}.txt": f"old {number}\n" * (number + 1) for number in range(6)}

ACTIONS: tuple[dict[str, Any], ...] = (
    *(action("write_file", path=f"old{n}.txt", content=f"new {n}\n" * 40) for n in range(3)),
    *(action("write_file", path=f"made/here{n}.txt", content=f"made {n}\n") for n in range(4)),
    *(
        action("edit_file", path=f"old{n}.txt", edits=[{"find": f"new {n}\n" * 40, "replace": "edited\n"}])
        for n in range(3)
    ),
    *(action("move_file", path=f"old{n}.txt", to=f"moved/{n}/old.txt") for n in (3, 4)),
    action("write_file", path="large.txt", content="0123456789abcdef\n" * 1000),
    action("edit_file", path="old5.txt", edits=[{"find": "old 5\n" * 6, "replace": "tail\n"}]),
    action("read_file", path="old5.txt"),
    *(action("write_file", path="old0.txt", content=f"version {n}\n" * 10) for n in range(5)),
)
"""Twenty actions, over five decisions."""


@dataclass(frozen=True)
class Fault:
    """What goes wrong, at the how many-th call of a kind: SIGKILL, or an error by its name."""

    call: str
    when: int
    error: str | None = None
    for_ever: bool = False

    @property
    def option(self) -> str:
        """As strace wants it."""
        what = f"error={self.error}" if self.error else "signal=KILL"
        return f"inject={self.call}:{what}:when={self.when}{'+' if self.for_ever else ''}"

    def __str__(self) -> str:
        return f"{self.error or 'kill'} at {self.call} {self.when}{' and after' if self.for_ever else ''}"


@dataclass(frozen=True)
class Ended:
    """A run that has ended, one way or another."""

    code: int
    printed: list[dict[str, Any]]
    said: str
    orphans: list[int]


class Stage:
    """A workspace, a home and a script for one run, in a folder of their own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folder = base / "work"
        self.folder.mkdir(parents=True)
        for name, text in FILES.items():
            (self.folder / name).write_text(text)
        lists = [ACTIONS[start : start + 4] for start in range(0, len(ACTIONS), 4)]
        answers = [decision("", *one, step="EXECUTION") for one in lists]
        self.script = write_script(
            base / "script.jsonl", [*answers, decision("And?", next_step="pending_user")]
        )
        self._marker = uuid.uuid4().hex

    @property
    def environment(self) -> dict[str, str]:
        """A home of its own, and a mark that all its processes carry."""
        places = {
            f"DUCKFLOW_{name}_DIR": str(self.base / name.lower()) for name in ("STATE", "CONFIG", "CACHE")
        }
        path = os.pathsep.join(["/usr/bin", "/bin"])
        return {
            "HOME": str(self.base),
            "LANG": "C.UTF-8",
            "PATH": path,
            "STAGE": self._marker,
            "PYTHONDONTWRITEBYTECODE": "1",
            **places,
        }

    def run(self, *strace: str) -> Ended:
        """`duckflow run`, under strace with these options."""
        command = [sys.executable, "-c", ONE_POOL_THREAD, "run", "go", "--json", "--mode", "edits"]
        command += ["--model", f"scripted:{self.script}", "--workspace", str(self.folder)]
        traced = ["strace", "-f", "-qq", *strace, "--", *command]
        done = subprocess.run(
            traced,
            env=self.environment,
            capture_output=True,
            timeout=TIME_LIMIT_S,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        return Ended(done.returncode, _whole_lines(done.stdout), done.stderr.decode(), self._orphans())

    def _orphans(self) -> list[int]:
        wanted = f"STAGE={self._marker}".encode()
        found: list[int] = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if wanted in (process / "environ").read_bytes() and (process / "exe").exists():
                    found.append(int(process.name))
            except OSError:
                continue
        return found


def _whole_lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.decode().splitlines(keepends=True) if line.endswith("\n")]


def can_inject() -> bool:
    """Whether there is an strace that may trace and inject."""
    if shutil.which("strace") is None:
        return False
    probe = ["strace", "-f", "-qq", "-e", "trace=exit_group", "-e", "inject=exit_group:signal=KILL", "true"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == -signal.SIGKILL


def count_calls(base: Path) -> Counter[str]:
    """How often the busiest thread of an undisturbed run makes each call; strace counts by thread."""
    stage = Stage(base)
    log = base / "calls.log"
    ended = stage.run("-e", f"trace={','.join(CALLS)}", "-o", str(log))
    assert ended.code == 3, ended.said
    by_thread: Counter[tuple[str, str]] = Counter()
    for line in log.read_text(errors="replace").splitlines():
        if found := _CALL.match(line):
            by_thread[found[1], found[2]] += 1
    most: Counter[str] = Counter()
    for (_, call), count in by_thread.items():
        most[call] = max(most[call], count)
    return most


def all_faults(counts: Counter[str], error: str | None = None) -> list[Fault]:
    """One fault at every call that was counted."""
    return [Fault(call, when, error) for call in CALLS for when in range(1, counts[call] + 1) if counts[call]]


def digests(folder: Path) -> dict[str, str]:
    """Every file by its content."""
    return {
        str(one.relative_to(folder)): hashlib.sha256(one.read_bytes()).hexdigest()
        for one in folder.rglob("*")
        if one.is_file()
    }


def replayed(before: dict[str, str], changes: list[FileChange]) -> dict[str, str]:
    """The files after these changes."""
    files = dict(before)
    for change in changes:
        assert files.get(change.path) == change.before, f"{change.path} was not what the record says"
        files.pop(change.path, None)
        if change.after is not None:
            files[change.path] = change.after
    return files


@contextmanager
def at_home(stage: Stage):
    """This process at the stage's home."""
    before = {name: os.environ.get(name) for name in stage.environment}
    os.environ.update(stage.environment)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name) if value is None else os.environ.__setitem__(name, value)


async def check_after(fault: Fault, base: Path) -> str:
    """Run with the fault, then look at everything; what became of the action that was running, in a word."""
    stage = Stage(base)
    before = digests(stage.folder)
    log = base / "calls.log"
    ended = stage.run("-e", f"trace={fault.call}", "-e", fault.option, "-o", str(log))
    assert ended.orphans == [], f"{fault}: processes were left"
    if fault.error is not None:
        # Where nothing at all can be written, not even into the void, Python ends with a code of its own.
        mute = (120,) if fault.for_ever and fault.call == "write" else ()
        assert ended.code in (0, 1, 2, 3, 4, *mute), f"{fault}: exit code {ended.code}: {ended.said}"
        assert "Traceback" not in ended.said, f"{fault}: {ended.said}"
    with at_home(stage):
        word = await _check_stage(stage, before, ended, fault)
    hit = "(INJECTED)" in log.read_text(errors="replace") if fault.error else ended.code == -signal.SIGKILL
    return word if hit else "not reached"


async def _check_stage(stage: Stage, before: dict[str, str], ended: Ended, fault: Fault) -> str:
    log = SqliteEventLog(stage.base / "state" / "duckflow.db")
    sessions = Sessions(log.database).listed()
    stored = log.load(sessions[0].id) if sessions else ()
    assert log.database.notices == (), f"{fault}: the database was damaged"
    log.close()
    kinds = [(one.seq, one.event.type) for one in stored]
    printed = [(line["seq"], line["type"]) for line in ended.printed if "seq" in line]
    missing = [line for line in printed if line not in kinds]
    assert missing == [], f"{fault}: shown and not stored: {missing}"
    assert fault.error or kinds[: len(printed)] == printed, f"{fault}: not shown in order"
    if not sessions:
        assert visible(digests(stage.folder)) == before
        return "nothing begun"
    started = [one.event for one in stored if isinstance(one.event, ActionStarted)]
    finished = [one.event for one in stored if isinstance(one.event, ActionFinished)]
    open_still = len(started) - len(finished)
    async with engine(
        stage.folder, decision("I see.", next_step="pending_user"), session=sessions[0].id
    ) as duck:
        events = [*(one.event for one in stored), *duck.events]
        changes = [one for event in events if isinstance(event, ActionFinished) for one in event.changes]
        now = digests(stage.folder)
        assert visible(now) == replayed(before, changes), f"{fault}: the record is not what the disk says"
        if open_still:
            assert now == visible(now), f"{fault}: something half-written was left"
        found = next((event for event in duck.events if isinstance(event, Recovered)), None)
        assert found is None or found.unknown == (), f"{fault}: {found.unknown} could have been known"
        assert open_still == 0 or found is not None, f"{fault}: a crash, and nothing said"
        assert await duck.app.chat.say("go on") == "pending_user", f"{fault}: it did not go on"
        await duck.app.undoing.undo(100)
        assert visible(digests(stage.folder)) == before, f"{fault}: undo did not bring everything back"
    return _word(open_still, found)


def visible(files: dict[str, str]) -> dict[str, str]:
    """Without what a killed write may leave for an hour: nobody sees it, and nobody takes it for a file."""
    return {path: digest for path, digest in files.items() if "/.duckflow-" not in f"/{path}"}


def _word(open_still: int, found: Recovered | None) -> str:
    if not open_still or found is None:
        return "between actions"
    return "not done" if found.not_done else "done"
