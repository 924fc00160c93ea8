"""What the sandbox costs: the same command bare and in each sandbox that works here, in turns.

    .venv/bin/python bench/sandbox.py [rounds]

On a machine with other work, `chrt -r 10` before it keeps that out of the numbers.

Bare is `bash -c true` started by asyncio. The others are the whole of `Shell.run`, on a copy where there is
one, in a folder of 100 files and in one of 100,000 (Landlock, which has no copy, only in the small one).
Then: taking over 1,000 files that a command made.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median

from duckflow.config.settings import ShellSettings
from duckflow.safety.sandbox.shell import Shell

COMMAND = "true"
SIZES = (100, 100_000)
CHANGED = 1_000
BOUND_MS = 12.0
TAKING_OVER_MS = 1_000.0
LEVELS = ("bubblewrap", "namespaces", "landlock")


async def bare(folder: Path) -> None:
    """The command as it costs least."""
    process = await asyncio.create_subprocess_exec(
        "/bin/bash", "-c", COMMAND, cwd=folder, stdout=asyncio.subprocess.PIPE
    )
    await process.communicate()


async def timed(work: Callable[[], Awaitable[object]]) -> float:
    """Milliseconds it took."""
    start = time.perf_counter()
    await work()
    return (time.perf_counter() - start) * 1000


def fill(folder: Path, files: int) -> None:
    """A folder with a repository and so many files."""
    (folder / ".git" / "hooks").mkdir(parents=True)
    for number in range(files):
        part = folder / f"area_{number % 20}" / f"part_{number % max(files // 20, 1)}"
        part.mkdir(parents=True, exist_ok=True)
        (part / f"{number}.py").write_text("x = 1\n")


async def measure(folder: Path, copies: Path, rounds: int, levels: tuple[str, ...]) -> dict[str, list[float]]:
    """Every way once a round, so that whatever else the machine does hits all of them."""
    shells = {
        level: Shell(folder, ShellSettings.model_validate({"sandbox": level}), copies=copies)
        for level in levels
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
                if number >= 3:  # the first start the launcher and fill caches
                    taken[name].append(took)
    finally:
        for shell in shells.values():
            await shell.aclose()
    return taken


async def take_over(folder: Path, copies: Path) -> tuple[float, float]:
    """Milliseconds to read what a command did to 1,000 files, with the command, and to take it over."""
    shell = Shell(folder, ShellSettings(), copies=copies)
    await shell.run("true")
    start = time.perf_counter()
    result = await shell.run(f"mkdir many; for n in $(seq {CHANGED}); do echo $n > many/$n; done")
    ran = (time.perf_counter() - start) * 1000
    if result.effects is None:
        return ran, 0.0
    taking = await timed(lambda: shell.take_over(result.copy_id, result.effects))
    await shell.aclose()
    return ran, taking


def main() -> None:
    """Print a line for each."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    for files in SIZES:
        with tempfile.TemporaryDirectory() as home:
            folder, copies = Path(home) / "work", Path(home) / "copies"
            fill(folder, files)
            levels = LEVELS if files == SIZES[0] else LEVELS[:2]
            taken = asyncio.run(measure(folder, copies, rounds, levels))
            changed = asyncio.run(take_over(folder, copies))
        least = median(taken["bare"])
        print(f"a folder of {files:,} files")
        for name, times in taken.items():
            over = f"+{median(times) - least:.1f} ms   (bound {BOUND_MS:.0f} ms)" if name != "bare" else ""
            print(f"  {name:<12}{median(times):6.1f} ms   {over}")
        print(f"  {CHANGED:,} files made by a command: {changed[0]:.0f} ms")
        print(f"  and taken over: {changed[1]:.0f} ms   (bound {TAKING_OVER_MS:.0f} ms)")


if __name__ == "__main__":
    main()
