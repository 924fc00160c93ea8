"""Kills the program with `kill -9` while it applies a command's effects, at chosen system calls (strace).

    .venv/bin/python bench/taking_over.py [--kills 300] [--seed 1]

A real command makes, changes, moves, deletes and sets the mode of files on its copy. A process applies these
effects to the folder and is killed at the n-th call of a kind. After each kill, every path must be as before
or as after, never between; the recovery at the next start must finish what was begun; and undo must restore
the folder byte by byte.
"""

import argparse
import asyncio
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from duckflow.config.settings import ShellSettings
from duckflow.domain.files.changes import ChangeSet, net_changes
from duckflow.loops.undo.recovery import finish_applying
from duckflow.loops.undo.undo import Undo
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.copy.copies import CopyFolders
from duckflow.safety.sandbox.copy.copy_writer import apply_effects
from duckflow.safety.sandbox.shell import Shell
from duckflow.store.kept_files import ChangeOwner, KeptFiles

CALLS = (
    *("write", "pwrite64", "fsync", "fdatasync", "syncfs", "rename", "renameat", "renameat2", "unlink"),
    *("unlinkat", "rmdir", "mkdirat", "mkdir", "fchmod", "chmod", "symlinkat", "ftruncate", "openat"),
    *("utimensat", "close", "flock", "lseek"),
)
COMMAND = """
for n in 1 2 3 4 5 6 7 8 9; do echo new $n > made$n; echo more >> old$n; done; chmod 755 old1 old2
mkdir -p deep/er; echo x > deep/er/file; ln -s old3 link; rm -r gone; mv moved elsewhere
rm kind; mkdir kind; echo in > kind/in
head -c 300000 /dev/zero | tr '\\0' y > large
mkdir -p node_modules/a; for n in 1 2 3; do echo $n > node_modules/a/$n; done
"""
OWNER = ChangeOwner("session", "request", "action")


def fill(folder: Path) -> None:
    """Create the files that the command will change."""
    for name in (*(f"old{n}" for n in range(1, 12)), "gone/a", "gone/b/c", "moved", "kind", "large"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{name} as it was\n" * 50)


def tree(folder: Path) -> dict[str, tuple[int, bytes]]:
    """Return every path with its mode and content, without temporary files that a kill may leave for an
    hour."""
    found: dict[str, tuple[int, bytes]] = {}
    for path in folder.rglob("*"):
        if path.name.startswith(".duckflow-"):
            continue
        if path.is_symlink():
            found[str(path.relative_to(folder))] = 0, os.fsencode(path.readlink())
        else:
            content = path.read_bytes() if path.is_file() else b"(folder)"
            found[str(path.relative_to(folder))] = path.stat().st_mode, content
    return found


class Stage:
    """A folder, the effects of a command on its copy, and a process that applies them."""

    def __init__(self, base: Path) -> None:
        self.folder, self.copies, self._database = base / "work", base / "copies", base / "kept.db"
        self.folder.mkdir(parents=True)
        fill(self.folder)
        self.before = tree(self.folder)
        self.copy_id = asyncio.run(self._run())

    async def _run(self) -> str:
        shell = Shell(self.folder, ShellSettings(), copies=self.copies)
        result = await shell.run(COMMAND)
        assert result.exit_code == 0, result.output
        assert result.effects is not None
        await shell.keep(result.copy_id)
        await shell.aclose()
        return result.copy_id

    def apply(self, *strace: str) -> int:
        """Apply the effects in a separate process under strace. Return the signal that ended it, or 0."""
        process = os.fork()
        if process == 0:
            code = 1
            try:
                os.kill(os.getpid(), signal.SIGSTOP)
                self._apply()
                code = 0
            finally:
                os._exit(code)
        os.waitpid(process, os.WUNTRACED)
        tracing = subprocess.Popen(["strace", "-p", str(process), *strace], stderr=subprocess.PIPE)
        assert tracing.stderr is not None
        assert b"attached" in tracing.stderr.readline()
        os.kill(process, signal.SIGCONT)
        tracing.stderr.read()
        tracing.wait()
        status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
        assert status in (0, -signal.SIGKILL), f"it ended with {status}"
        return -status

    def _apply(self) -> None:
        copy = CopyFolders(self.copies).find(self.copy_id)
        assert copy is not None
        workspace, kept = Workspace(self.folder), KeptFiles(self._database, 100_000_000)
        apply_effects(copy, copy.read().effects, Access(workspace, kept, OWNER))

    def after_a_crash(self) -> None:
        """Run the recovery of the next start."""
        workspace, kept = Workspace(self.folder), KeptFiles(self._database, 100_000_000)
        finish_applying(self.copies, workspace, kept)
        kept.close()

    def undo(self) -> None:
        """Undo all changes of the command."""
        workspace, kept = Workspace(self.folder), KeptFiles(self._database, 100_000_000)
        changes = net_changes(kept.changes(OWNER[0], OWNER[2]))
        made = ChangeSet(action_id=OWNER[2], request_id=OWNER[1], operation="shell.run", changes=changes)
        nobody: Any = None
        undo = cast("Any", Undo(nobody, workspace, kept, nobody))
        left = undo._restore_all([made], Access(workspace, kept, ChangeOwner("session", "undo", "undo")))
        assert left == (), left
        kept.close()


def count_calls(base: Path) -> tuple[Counter[str], dict[str, tuple[int, bytes]]]:
    """Count the system calls of an undisturbed run, and return them with the resulting folder."""
    stage, log = Stage(base), base / "calls"
    assert stage.apply("-e", f"trace={','.join(CALLS)}", "-o", str(log)) == 0
    names = re.findall(r"^(\w+)\(", log.read_text(errors="replace"), re.MULTILINE)
    return Counter(names), tree(stage.folder)


def check(base: Path, call: str, when: int, after: dict[str, tuple[int, bytes]]) -> str:
    """Kill once and return how far it got. Raise AssertionError if anything is wrong afterwards."""
    stage = Stage(base)
    option = f"inject={call}:signal=KILL:when={when}"
    killed = stage.apply("-e", f"trace={call}", "-e", option, "-o", "/dev/null")
    now = tree(stage.folder)
    for path, found in now.items():
        content = {one[path][1] for one in (stage.before, after) if path in one}
        assert found[1] in content, f"{path} is torn"
    lost = [path for path in stage.before.keys() & after.keys() if path not in now and path != "kind"]
    assert not lost, f"lost: {lost}"
    stage.after_a_crash()
    finished = tree(stage.folder)
    assert finished in (stage.before, after), "neither before nor after"
    stage.undo()
    assert tree(stage.folder) == stage.before, "undo did not give it back"
    if not killed:
        return "not reached"
    return "nothing changed yet" if now == stage.before else "all done" if now == after else "between"


def choose(counts: Counter[str], kills: int, seed: int) -> list[tuple[str, int]]:
    """Choose that many calls, taking turns between the kinds."""
    chance = random.Random(seed)
    points = {call: [(call, n + 1) for n in range(count)] for call, count in counts.items()}
    for each in points.values():
        chance.shuffle(each)
    chosen: list[tuple[str, int]] = []
    while len(chosen) < kills and any(points.values()):
        chosen += [each.pop() for each in points.values() if each]
    return chosen[:kills]


def sweep(base: Path, kills: int, seed: int, say: Callable[[str], object] = print) -> int:
    """Try that many kills and return how many went wrong."""
    counts, after = count_calls(base / "counted")
    found: Counter[str] = Counter()
    wrong = 0
    for number, (call, when) in enumerate(choose(counts, kills, seed)):
        place = base / str(number)
        try:
            found[check(place, call, when, after)] += 1
        except AssertionError as error:
            wrong += 1
            say(f"  WRONG kill at {call} {when}: {error}")
        shutil.rmtree(place, ignore_errors=True)
    listed = ", ".join(f"{word} {count}" for word, count in sorted(found.items()))
    say(f"kills: {sum(found.values()) + wrong}, {wrong} went wrong; {listed}; of {counts.total()} calls")
    return wrong


def main() -> None:
    """Count, choose and kill, then report the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        sys.exit(1 if sweep(Path(folder), options.kills, options.seed) else 0)


if __name__ == "__main__":
    main()
