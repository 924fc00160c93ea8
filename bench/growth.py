"""Whether anything grows: a loop in folders of 100, 10,000 and 100,000 files, and resuming 10,000 events.

    .venv/bin/python bench/growth.py [--rounds N] [--sizes N ...]

A loop runs one shell command, wanted by a model that answers at once. Rounds take turns between the sizes,
after one that reads the folder into the system's cache. `bench/long_session.py` has loop 20 against 2,000.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import long_session
from peers.agents import DUCKFLOW
from peers.results import write_result
from peers.runs import Run, run

from duckflow.domain.events import Reply, UserMessage
from duckflow.loops.session import Session
from duckflow.store.event_log import SqliteEventLog

EVENTS = (100, 10_000)


def folders(sizes: list[int], rounds: int) -> list[dict[str, float]]:
    """Start, first loop and a later loop in a folder of each size."""
    seen: dict[int, list[Run]] = {size: [] for size in sizes}
    for number in range(rounds + 1):
        for size in sizes:
            measured = run(DUCKFLOW, 20, files=size)
            if number:
                seen[size].append(measured)
    return [
        {
            "files": size,
            "start_s": statistics.median(one.start_s for one in runs),
            "first_loop_ms": statistics.median(one.first_loop_ms for one in runs),
            "loop_ms": statistics.median(one.loop_ms for one in runs),
        }
        for size, runs in seen.items()
    ]


def resuming() -> list[dict[str, float]]:
    """Milliseconds to load a session of so many events."""
    rows: list[dict[str, float]] = []
    for count in EVENTS:
        with tempfile.TemporaryDirectory() as place:
            log = SqliteEventLog(Path(place) / "state" / "log.db")
            for number in range(count // 2):
                log.append("s", [UserMessage(text=f"message {number}"), Reply(text=f"reply {number}")])
            took = []
            for _ in range(3):
                begin = time.perf_counter()
                Session.load(log, "s")
                took.append((time.perf_counter() - begin) * 1000)
            log.close()
        rows.append({"events": count, "load_ms": statistics.median(took)})
    return rows


def length(loops: int) -> list[dict[str, float]]:
    """Milliseconds a loop early, in the middle and late in one session."""
    with tempfile.TemporaryDirectory() as state:
        os.environ["DUCKFLOW_STATE_DIR"] = state
        times = asyncio.run(long_session.measure(loops, memory=False))
    near = {20: times[1:6], loops // 10: times[len(times) // 10 - 3 :][:6], loops: times[-6:]}
    return [{"loop": loop, "loop_ms": statistics.median(values)} for loop, values in near.items()]


def main() -> None:
    """Print what was measured, and keep it."""
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=3)
    options.add_argument("--sizes", type=int, nargs="*", default=[100, 10_000, 100_000])
    options.add_argument("--loops", type=int, default=2000)
    chosen = options.parse_args()
    found = {
        "folders": folders(chosen.sizes, chosen.rounds),
        "length": length(chosen.loops),
        "resuming": resuming(),
    }
    write_result("growth", found)
    for rows in found.values():
        for row in rows:
            print("   ".join(f"{name} {value:,.4g}" for name, value in row.items()))


if __name__ == "__main__":
    main()
