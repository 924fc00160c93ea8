"""One run of one agent: the times of its requests, and the memory of its processes."""

import statistics
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from peers.agents import Agent
from peers.server import PeerServer

PATIENCE_S = 180
SAMPLE_S = 0.02


@dataclass(frozen=True)
class Run:
    """Measurements of a run: seconds to the first request, milliseconds per loop, megabytes, characters."""

    start_s: float
    loop_ms: float
    first_loop_ms: float
    memory_mb: float
    cost: float
    loops: int


def run(agent: Agent, loops: int, *, files: int = 20, made: Path | None = None, memory: bool = False) -> Run:
    """Run an agent for `loops` loops, in a new folder with that many files or in the folder `made`. Memory
    is measured only on request, because that takes time itself."""
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as place:
        folder = made or make_folder(Path(place), files)
        with PeerServer(loops) as server:
            begin = time.perf_counter()
            process = subprocess.Popen(
                agent.command(server.url, folder, loops),
                env={**agent.environment(server.url, Path(home))},
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            peak = MemoryPeak(process.pid) if memory else None
            try:
                said = process.communicate(timeout=PATIENCE_S)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                process.kill()
                said = process.communicate()[0].decode(errors="replace")
            taken = peak.end() if peak else 0.0
            if len(server.arrivals) < min(loops, 2):
                raise RuntimeError(f"{agent.name} did not get going:\n{said[-2000:]}")
            between = [(b - a) * 1000 for a, b in zip(server.arrivals, server.arrivals[1:], strict=False)]
            return Run(
                start_s=server.arrivals[0] - begin,
                loop_ms=statistics.median(between) if between else 0.0,
                first_loop_ms=between[0] if between else 0.0,
                memory_mb=taken,
                cost=server.cost(),
                loops=len(server.arrivals),
            )


def make_folder(folder: Path, files: int) -> Path:
    """Create that many small files, a hundred in each subfolder."""
    for number in range(files):
        part = folder / f"part_{number // 100:04}"
        part.mkdir(exist_ok=True)
        (part / f"file_{number:06}.py").write_text(f"value = {number}\n", "utf-8")
    return folder


class MemoryPeak:
    """Samples the memory of a process and all its descendants, and keeps the maximum."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._most = 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def end(self) -> float:
        """Stop sampling and return the maximum in megabytes."""
        self._over.set()
        self._thread.join()
        return self._most

    def _watch(self) -> None:
        while not self._over.wait(SAMPLE_S):
            self._most = max(self._most, sum(_fair_share(pid) for pid in _tree(self._pid)))


def _tree(pid: int) -> list[int]:
    found, todo = [], [pid]
    while todo:
        one = todo.pop()
        found.append(one)
        with suppress(OSError, ValueError):
            for thread in Path(f"/proc/{one}/task").iterdir():
                children = (thread / "children").read_text().split()
                todo += [int(child) for child in children]
    return found


def _fair_share(pid: int) -> float:
    """Return the megabytes of a process, where shared pages count in part for each process (PSS)."""
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    return 0.0
