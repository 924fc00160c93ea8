"""Measures the cost of the sandbox: the same command bare and in each sandbox that works here, alternately.

    .venv/bin/python bench/sandbox.py [rounds]

On a busy machine, prefix it with `chrt -r 10` to keep other load out of the numbers.

Bare is `bash -c true` started by asyncio. The others are a complete `Shell.run`, on a copy if the sandbox
uses one, in folders of 100 and 100,000 files. It also measures applying the effects of a command that made
1,000 files, and file operations from the gate to the stored event, compared with the plain call.
"""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from peers.isolation import without_network
from peers.results import write_result

from duckflow.config.settings import ShellSettings
from duckflow.domain.events import ActionFinished, ActionStarted
from duckflow.safety.sandbox.shell import Shell
from fakes.engine import action, decision, engine

COMMAND = "true"
SIZES = (100, 100_000)
CHANGED = 1_000
BOUND_MS = 12.0
TAKING_OVER_MS = 1_000.0
LEVELS = ("bubblewrap", "namespaces", "landlock")


async def bare(folder: Path) -> None:
    """Run the command in the cheapest way."""
    process = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", COMMAND, cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    await process.communicate()


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Return the milliseconds that the work took."""
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1000


def fill(folder: Path, files: int) -> None:
    """Create a repository and that many files."""
    (folder / ".git" / "hooks").mkdir(parents=True)
    for number in range(files):
        part = folder / f"area_{number % 20}" / f"part_{number % max(files // 20, 1)}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{number}.py").write_text("x = 1\n")


async def measure(folder: Path, copies: Path, rounds: int) -> dict[str, list[float]]:
    """Run the command in every way once per round, so that other load affects all of them."""
    shells = {
        level: Shell(folder, ShellSettings.model_validate({"sandbox": level}), copies=copies)
        for level in LEVELS
    }
    ways: dict[str, Callable[[], Awaitable[object]]] = {"bare": lambda: bare(folder)}
    for level, shell in shells.items():
        if (await shell.sandbox()).level == level:
            ways[level] = lambda shell=shell: shell.run(COMMAND)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for number in range(rounds + 3):
            for name, way in ways.items():
                took = await timed(way)
                if number >= 3:  # the first ones start the launcher and fill caches
                    taken[name].append(took)
    finally:
        for shell in shells.values():
            await shell.aclose()
    return taken


async def apply(folder: Path, copies: Path) -> tuple[float, float]:
    """Return milliseconds to run a command that makes 1,000 files and read its effects, and to apply them."""
    shell = Shell(folder, ShellSettings(), copies=copies)
    await shell.run("true")
    start = time.perf_counter()
    result = await shell.run(f"mkdir many; for n in $(seq {CHANGED}); do echo $n > many/$n; done")
    ran = (time.perf_counter() - start) * 1000
    if result.effects is None:
        return ran, 0.0
    taking = await timed(lambda: shell.apply(result.copy_id, result.effects))
    await shell.aclose()
    return ran, taking


async def operations(folder: Path, rounds: int) -> list[list[str]]:
    """Measure milliseconds per action of each kind, from start to stored end, and of the plain call."""
    text, target = "value = 1\n" * 40, folder / "a.py"
    target.write_text(text, "utf-8")
    plain: dict[str, Callable[[int], object]] = {
        "read_file": lambda _: target.read_text("utf-8"),
        "write_file": lambda number: (folder / "b.py").write_text(f"{text}{number}", "utf-8"),
        "edit_file": lambda _: target.write_text(target.read_text("utf-8"), "utf-8"),
        "list_files": lambda _: sorted(os.scandir(folder), key=lambda entry: entry.name),
    }
    wanted = [
        one
        for number in range(rounds)
        for one in (
            action("read_file", path="a.py"),
            action("write_file", path="b.py", content=f"{text}{number}\n"),
            action(
                "edit_file", path="c.py", edits=[{"find": f"n = {number}", "replace": f"n = {number + 1}"}]
            ),
            action("list_files"),
        )
    ]
    (folder / "c.py").write_text("n = 0\n", "utf-8")
    begun: dict[str, float] = {}
    taken: dict[str, list[float]] = {name: [] for name in plain}

    def see(what: object) -> None:
        event = getattr(what, "event", None)
        if isinstance(event, ActionStarted):
            begun[event.action_id] = time.perf_counter()
        elif isinstance(event, ActionFinished):
            took = (time.perf_counter() - begun[event.action_id]) * 1000
            taken[event.operation.partition(".")[2]].append(took)

    decisions = [decision("", *wanted[at : at + 4]) for at in range(0, len(wanted), 4)]
    async with engine(folder, *decisions, decision("Done."), max_loops=1000) as duck:
        duck.app.session.subscribe(see)
        await duck.app.chat.say("go")
    rows = []
    for name, call in plain.items():
        bare_ms = []
        for number in range(rounds):
            start = time.perf_counter()
            call(number)
            bare_ms.append((time.perf_counter() - start) * 1000)
        rows.append([f"`file_ops.{name}`", f"{median(bare_ms):.2f} ms", f"{median(taken[name]):.1f} ms", ""])
    return rows


def main() -> None:
    """Print and store a line for each measurement."""
    without_network()
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    rows: list[list[str]] = []
    for files in SIZES:
        with tempfile.TemporaryDirectory() as home:
            folder, copies = Path(home) / "work", Path(home) / "copies"
            fill(folder, files)
            os.sync()  # otherwise applying effects, which syncs the disk, would also write these files
            taken = asyncio.run(measure(folder, copies, rounds))
            changed = asyncio.run(apply(folder, copies))
        least = median(taken["bare"])
        print(f"a folder of {files:,} files")
        for name, times in taken.items():
            over = f"+{median(times) - least:.1f} ms   (bound {BOUND_MS:.0f} ms)" if name != "bare" else ""
            if name != "bare":
                what = f"a command in {name}, {files:,} files"
                rows.append([what, f"{least:.1f} ms", f"{median(times):.1f} ms", f"{BOUND_MS:.0f} ms more"])
            print(f"  {name:<12}{median(times):6.1f} ms   {over}")
        print(f"  {CHANGED:,} files made by a command: {changed[0]:.0f} ms")
        print(f"  and taken over: {changed[1]:.0f} ms   (bound {TAKING_OVER_MS:.0f} ms)")
        what = f"taking over {CHANGED:,} files, {files:,} files"
        rows.append([what, "-", f"{changed[1]:.0f} ms", f"{TAKING_OVER_MS:.0f} ms"])
    with tempfile.TemporaryDirectory() as home:
        os.environ["DUCKFLOW_STATE_DIR"] = f"{home}/state"
        (Path(home) / "work").mkdir()
        for row in asyncio.run(operations(Path(home) / "work", rounds)):
            print("  ".join(row))
            rows.append(row)
    write_result("safety", {"heads": ["action", "plain", "Duckflow", "bound"], "rows": rows})


if __name__ == "__main__":
    main()
