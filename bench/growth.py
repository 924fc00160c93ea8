"""Measures growth: a loop in large folders, a loop late in a session, and resuming a long session.

    .venv/bin/python bench/growth.py [--rounds N] [--sizes N ...] [--loops N ...]

In folders, each loop runs one shell command, requested by a model that answers at once. Rounds alternate
between the sizes, after a first one that reads the folders into the system's cache. For sessions, see
`bench/long_session.py`. The network is off.
"""

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import long_session
from peers.agents import DUCKFLOW
from peers.isolation import without_network
from peers.results import spread, write_result
from peers.runs import Run, make_folder, run

from duckflow.domain.events import Reply, UserMessage
from duckflow.loops.session import Session
from duckflow.store.event_log import SqliteEventLog

EVENTS = (100, 1_000, 10_000)


def folders(sizes: list[int], rounds: int) -> list[dict[str, object]]:
    """Measure the start, the first loop and a later loop in a folder of each size."""
    seen: dict[int, list[Run]] = {size: [] for size in sizes}
    with tempfile.TemporaryDirectory() as place:
        made = {size: Path(place) / str(size) for size in sizes}
        for size, folder in made.items():
            folder.mkdir()
            make_folder(folder, size)
        for number in range(rounds + 1):
            for size in sizes:
                measured = run(DUCKFLOW, 20, made=made[size])
                if number:
                    seen[size].append(measured)
    return [
        {
            "files": size,
            "start_s": spread([one.start_s for one in runs]),
            "first_loop_ms": spread([one.first_loop_ms for one in runs]),
            "loop_ms": spread([one.loop_ms for one in runs]),
        }
        for size, runs in seen.items()
    ]


def sessions(loops: list[int]) -> list[dict[str, object]]:
    """Measure milliseconds per loop early and late in a session."""
    taken = asyncio.run(long_session.times(loops))
    return [{"loop": count, "loop_ms": spread(took)} for count, took in taken.items()]


def resuming() -> list[dict[str, object]]:
    """Measure milliseconds to load sessions of different lengths."""
    rows: list[dict[str, object]] = []
    for count in EVENTS:
        with tempfile.TemporaryDirectory() as place:
            log = SqliteEventLog(Path(place) / "state" / "log.db")
            for number in range(count // 2):
                said = UserMessage(request_id="r", text=f"message {number}")
                log.append("s", [said, Reply(text=f"reply {number}")])
            took = []
            for _ in range(5):
                begin = time.perf_counter()
                Session(log, "s")
                took.append((time.perf_counter() - begin) * 1000)
            log.close()
        rows.append({"events": count, "load_ms": spread(took)})
    return rows


def main() -> None:
    """Print the measurements and store them."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--sizes", type=int, nargs="*", default=[100, 10_000, 100_000])
    options.add_argument("--loops", type=int, nargs="*", default=[20, 200, 2_000])
    chosen = options.parse_args()
    isolated = without_network()
    found = {
        "folders": folders(chosen.sizes, chosen.rounds),
        "sessions": sessions(chosen.loops),
        "resuming": resuming(),
    }
    write_result("growth", {"isolated": isolated, **found})
    for rows in found.values():
        for row in rows:
            print("   ".join(f"{name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
