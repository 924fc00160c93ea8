"""Tries random commands on random folders, with edits by the user meanwhile, and checks what must hold.

    .venv/bin/python bench/effects_fuzz.py [--seconds 60] [--seed 0] [--processes 2]

Every case makes a folder, runs one command of random file operations through a whole session, and approves
what is asked. The user may edit files while the command runs, while the question is open, and before undo.
Checked:

    outside   nothing beside the folder changed
    same      without the user's edits, the folder is as if the command had run in it directly
    kept      what the user wrote meanwhile is still there, unless a question named the conflict
    undone    after /undo the folder is as before, up to the user's edits

A failure prints its seed; `--seed N --seconds 0` repeats that case alone.
"""

import argparse
import asyncio
import faulthandler
import os
import random
import shlex
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from duckflow.domain.events import ApprovalRequested
from duckflow.domain.questions.approval import AnswerApproval
from fakes.engine import Watched, decision, engine

NAMES = ("a", "b", "c.txt", "d e", "日本", "f.py", ".g", "-h", "new\nline")
_GIT = "git -c user.name=n -c user.email=n@example.org"

PLAIN_S = 20
STUCK_S = 120
"""A case that takes longer counts as a failure. After half of it, the stacks of its threads are printed."""

Entry = tuple[str, int, bytes]
Tree = dict[str, Entry]


def tree(folder: Path) -> Tree:
    """Return kind, permissions and content of everything in a folder, without git's own files."""
    found: Tree = {}
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if name.split("/")[0] == ".git":
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder", stat.S_IMODE(status.st_mode), b"")
        elif stat.S_ISREG(status.st_mode):
            found[name] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes())
        else:
            found[name] = ("other", 0, b"")
    return found


class Case:
    """One random case, determined by its seed."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)
        self.uses_git = self._random.random() < 0.35
        self.edits = self._random.random() < 0.5
        self.leads_out = False

    def path(self) -> str:
        """Return a random path, one to three names long."""
        return "/".join(self._random.choice(NAMES) for _ in range(self._random.choice((1, 1, 2, 2, 3))))

    def fill(self, folder: Path) -> None:
        """Make a random folder."""
        folder.mkdir()
        for _ in range(self._random.randint(2, 14)):
            path = folder / self.path()
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                kind = self._random.random()
                if kind < 0.15:
                    path.mkdir(exist_ok=True)
                elif kind < 0.25:
                    path.symlink_to(self._random.choice(NAMES))
                else:
                    path.write_bytes(self.content())
                    path.chmod(self._random.choice((0o644, 0o644, 0o755, 0o600)))
            except OSError:
                continue  # a file is where a folder would be, or the reverse
        if self.uses_git:
            (folder / "ign").mkdir(exist_ok=True)
            (folder / "ign" / "data").write_bytes(b"precious\n")
            ignored = "printf 'ign/\\n' > .gitignore"
            git = f"git init -q -b main; {ignored}; {_GIT} add -A; {_GIT} commit -qm first"
            subprocess.run(["bash", "-c", git], cwd=folder, check=True, capture_output=True)

    def content(self) -> bytes:
        """Return content for a file, mostly short."""
        size = self._random.choice((0, 3, 20, 20, 5_000, 300_000))
        return self._random.randbytes(size // 2).hex().encode() + b"\n"

    def command(self) -> str:
        """Return a random command of file operations, none of which fails it."""
        steps = [self.step() for _ in range(self._random.randint(1, 9))]
        if self.edits:
            steps.insert(self._random.randrange(len(steps) + 1), "sleep 0.4")
        return "\n".join(["echo begun", *(f"{{ {step}; }} 2>/dev/null || true" for step in steps)])

    def step(self) -> str:
        """Return one random file operation."""
        one, two = (shlex.quote(f"./{self.path()}") for _ in range(2))
        if one.strip("'") in two or two.strip("'") in one:
            two = "./other"  # copying a folder into itself has no certain result
        steps = [
            *(f"echo {self._random.random()} > {one}", f"echo {self._random.random()} >> {one}"),
            *(f"rm -rf {one}", f"mkdir -p {one}", f"mv {one} {two}", f"cp -r {one} {two}", f"mv {one}/* ."),
            *(f"ln -sfn {shlex.quote(self._random.choice(NAMES))} {one}", f"ln {one} {two}", f"touch {one}"),
            *(f"[ -d {one} ] || chmod {self._random.choice(('755', '644', '700', '600'))} {one}",),
            *(f"truncate -s {self._random.choice((0, 7, 5000))} {one}", f"mkfifo {one}"),
            f"rm -rf {one} && mkdir -p {one} && echo again > {one}/x",
            f"mv {one} tmp.1 && mv {two} {one} && mv tmp.1 {two}",
            "find . -name '*.py' -delete",
            "rm -rf ign",
        ]
        if self._random.random() < 0.08:
            self.leads_out = True
            return f"ln -s ../outside {one}; echo x > {one}/canary; ln -s /etc/passwd {two}; cat {two}"
        if self.uses_git and self._random.random() < 0.3:
            stash = f"{_GIT} log" if self.edits else f"{_GIT} stash"  # it would hold what the user wrote
            return self._random.choice((f"{_GIT} add -A", f"{_GIT} add -A; {_GIT} commit -qm more", stash))
        return self._random.choice(steps)

    def chance(self, share: float) -> bool:
        """Return True in this share of the calls."""
        return self._random.random() < share

    def pause(self) -> float:
        """Return how many seconds the user waits."""
        return self._random.choice((0.0, 0.1, 0.3))

    def edit(self, folder: Path, edited: dict[str, bytes | None]) -> None:
        """Edit one file as the user, mostly an existing one."""
        files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
        files = [path for path in files if ".git" not in path.relative_to(folder).parts[:1]]
        path = self._random.choice(files) if files and self._random.random() < 0.7 else folder / self.path()
        name = path.relative_to(folder).as_posix()
        try:
            if path.is_symlink() or any(above.is_symlink() for above in path.parents):
                return
            if self._random.random() < 0.25:
                path.unlink()
                edited[name] = None
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                written = f"by the user {self._random.random()}\n".encode()
                path.write_bytes(written)
                edited[name] = written
        except OSError:
            return


async def run(case: Case, place: Path) -> list[str]:
    """Run one case and return what is wrong."""
    folder, plain, outside = place / "w", place / "p" / "w", place / "outside"
    for beside in (outside, place / "p" / "outside"):
        beside.mkdir(parents=True)
        (beside / "canary").write_text("mine\n")
    case.fill(folder)
    before, command = tree(folder), case.command()
    if case.leads_out:  # it is not tried before, and may wait for a reader or writer of a pipe
        command = f"timeout {PLAIN_S} bash -c {shlex.quote(command)}"
    shutil.copytree(folder, plain, symlinks=True)
    # Never run a command directly that makes links to files of the machine: root would write through them.
    if not case.leads_out and not await asyncio.to_thread(ends, command, plain):
        return []  # it waits for a reader or writer of a pipe
    edited: dict[str, bytes | None] = {}
    wrong: list[str] = []
    asks = {"operation": "shell.run", "args": {"command": command}}
    mode = "ask" if case.chance(0.5) else "auto"
    async with engine(folder, decision("", asks), decision("Done."), mode=mode) as duck:
        conflict = await work(case, duck, folder, edited)
        after = tree(folder)
        alone = not edited and not conflict
        if alone and not case.leads_out and comparable(after) != comparable(tree(plain)):
            wrong.append(f"same: {differences(after, tree(plain))}")
        wrong += [f"kept, after the command: {name}" for name in ([] if conflict else lost(after, edited))]
        if case.edits and case.chance(0.5):
            case.edit(folder, edited)
        await duck.app.undoing.undo_request()
        undone = tree(folder)
        if alone and not edited and comparable(undone) != comparable(before):
            wrong.append(f"undone: {differences(undone, before)}")
        wrong += [f"kept, after the undo: {name}" for name in ([] if conflict else lost(undone, edited))]
    if tree(outside) != {"canary": ("file", 0o644, b"mine\n")}:
        wrong.append("outside")
    return wrong


def ends(command: str, folder: Path) -> bool:
    """Run a command directly. Return whether it ended."""
    with subprocess.Popen(
        ["bash", "-c", command], cwd=folder, stdout=subprocess.DEVNULL, start_new_session=True
    ) as process:
        try:
            process.wait(PLAIN_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return False
    return True


async def work(case: Case, duck: Watched, folder: Path, edited: dict[str, bytes | None]) -> bool:
    """Send the request and answer its questions. Return whether one was about a conflict."""
    saying = asyncio.ensure_future(duck.app.chat.say("go"))
    if case.edits:
        while not saying.done() and not any("begun" in str(one) for one in duck.live_updates):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        await asyncio.sleep(case.pause())
        case.edit(folder, edited)
    await saying
    while duck.state.approval:
        if case.edits and case.chance(0.4):
            case.edit(folder, edited)
        await duck.app.chat.answer(AnswerApproval(yes=True))
    return any(one.approval.because == "conflict" for one in duck.of(ApprovalRequested))


def lost(now: Tree, edited: dict[str, bytes | None]) -> list[str]:
    """Return the names of files that lost the user's content."""
    contents = {content for _, _, content in now.values()}
    return [name for name, content in edited.items() if content is not None and content not in contents]


def comparable(found: Tree) -> Tree:
    """Leave out what a copy drops: pipes, and links that lead outside."""
    return {name: one for name, one in found.items() if one[0] != "other" and not _leads_out(one)}


def _leads_out(one: Entry) -> bool:
    return one[0] == "link" and (one[2].startswith(b"/") or b".." in one[2].split(b"/"))


def differences(one: Tree, other: Tree) -> list[tuple[str, object, object]]:
    """Return the entries that differ, without long contents."""
    names = sorted({name for name in {*one, *other} if one.get(name) != other.get(name)})
    return [(name, _short(one.get(name)), _short(other.get(name))) for name in names]


def _short(entry: Entry | None) -> object:
    return None if entry is None else (entry[0], oct(entry[1]), len(entry[2]), entry[2][:20])


def run_until(start: int, step: int, end: float) -> tuple[int, list[str]]:
    """Run the cases of one process until the end. Return their number and the failures."""
    os.environ["DUCKFLOW_LANGUAGE"] = "en"
    seed, count, failures = start, 0, list[str]()
    while count == 0 or time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="fuzz-", ignore_cleanup_errors=True) as home:
            os.environ["HOME"] = home
            case = Case(seed)
            faulthandler.dump_traceback_later(STUCK_S / 2)
            try:
                wrong = asyncio.run(asyncio.wait_for(run(case, Path(home)), STUCK_S))
            except TimeoutError:
                wrong = [f"stuck: no end after {STUCK_S} s"]
            except Exception as exc:  # noqa: BLE001 - any crash is a finding
                wrong = [f"crash: {exc!r}"]
            faulthandler.cancel_dump_traceback_later()
            failures += [f"seed {seed}: {one}" for one in wrong]
            for one in wrong:
                print(f"seed {seed}: {one[:600]}", flush=True)
        seed, count = seed + step, count + 1
    return count, failures


def main() -> None:
    """Run the cases and print how many failed."""
    parser = argparse.ArgumentParser(description="Try random commands on random folders.")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    asked = parser.parse_args()
    many = asked.processes if asked.seconds else 1
    end = time.monotonic() + asked.seconds
    with ProcessPoolExecutor(many) as pool:
        done = [pool.submit(run_until, asked.seed + n, many, end) for n in range(many)]
        results = [one.result() for one in done]
    failures = [one for _, found in results for one in found]
    print(f"{sum(count for count, _ in results)} cases, {len(failures)} failures")
    sys.exit(1 if failures else 0)


if __name__ == "__main__":
    main()
