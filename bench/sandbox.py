"""What the sandbox costs: the same command bare and in each sandbox that works here, in turns.

    .venv/bin/python bench/sandbox.py [rounds]

Bare is `bash -c true` started by asyncio. The others are the whole of `Shell.run`, with its looks at the
workspace before and after, in a folder of 500 files with a repository.
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
FILES = 500
BOUND_MS = 15.0
LEVELS = ("none", "landlock", "bubblewrap")


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


async def measure(folder: Path, rounds: int) -> dict[str, list[float]]:
    """Every way once a round, so that whatever else the machine does hits all of them."""
    shells = {level: Shell(folder, ShellSettings.model_validate({"sandbox": level})) for level in LEVELS}
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


def main() -> None:
    """Print a line for each."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "work"
        (folder / ".git" / "hooks").mkdir(parents=True)
        for number in range(FILES):
            part = folder / f"part_{number % 20}"
            part.mkdir(exist_ok=True)
            (part / f"{number}.py").write_text("x = 1\n")
        taken = asyncio.run(measure(folder, rounds))
    least = median(taken["bare"])
    for name, times in taken.items():
        over = f"+{median(times) - least:.1f} ms   (bound {BOUND_MS:.0f} ms)" if name != "bare" else ""
        print(f"{name:<12}{median(times):6.1f} ms   {over}")


if __name__ == "__main__":
    main()
