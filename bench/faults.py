"""Tries kills, full disks and disk errors at every write of a session of twenty actions.

    python bench/faults.py [--kills N] [--errors N] [--seed N]

For each fault, `duckflow run` works on a scripted session under strace, in a temporary folder and home, until
the fault hits. Afterwards no file may be torn, everything that was shown must be stored, no process may be
left, the next start must report correctly what was done, the session must continue, and undo must restore
every file. All calls except `pwrite64` are tried; of the many similar `pwrite64` calls, a sample makes up the
number.
"""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from peers.isolation import without_network
from peers.results import write_result

from fakes.faults import Fault, all_faults, can_inject, check_after, count_calls

OFTEN = "pwrite64"
NAMES = {
    "kill": "`kill -9`",
    "ENOSPC": "disk full, once",
    "EIO": "disk error, once",
    "full": "disk full from there on",
}


def choose(faults: list[Fault], count: int, seed: int) -> list[Fault]:
    """Choose all rare calls, then a sample of the frequent one."""
    chance = random.Random(seed)
    rare = [fault for fault in faults if fault.call != OFTEN]
    often = [fault for fault in faults if fault.call == OFTEN]
    if len(rare) > count:
        return chance.sample(rare, count)
    return rare + chance.sample(often, min(len(often), count - len(rare)))


ROWS: list[list[str]] = []


def sweep(name: str, faults: list[Fault], base: Path) -> int:
    """Try all faults and return how many went wrong."""
    found, wrong, begun = Counter(), 0, time.perf_counter()
    for number, fault in enumerate(faults):
        stage = base / f"{name}{number}"
        try:
            found[asyncio.run(check_after(fault, stage))] += 1
        except AssertionError as error:
            wrong += 1
            print(f"  WRONG {fault}: {error}", flush=True)
        shutil.rmtree(stage, ignore_errors=True)
    seconds = time.perf_counter() - begun
    listed = ", ".join(f"{word} {count}" for word, count in sorted(found.items()))
    ROWS.append([NAMES[name], f"{len(faults)}", f"{wrong}", listed])
    print(f"{name}: {len(faults)} faults, {wrong} went wrong; {listed} ({seconds:.0f} s)", flush=True)
    return wrong


def main() -> None:
    """Count, choose and try, then report the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=320)
    parser.add_argument("--errors", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    without_network()
    if not can_inject():
        sys.exit("strace is needed, and the right to trace.")
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder)
        counts = count_calls(base / "counted")
        print(
            "calls of the busiest thread:",
            ", ".join(f"{call} {count}" for call, count in counts.most_common()),
        )
        wrong = sweep("kill", choose(all_faults(counts), options.kills, options.seed), base)
        for error in ("ENOSPC", "EIO"):
            faults = choose(all_faults(counts, error), options.errors, options.seed)
            wrong += sweep(error, faults, base)
        lasting = [Fault(f.call, f.when, "ENOSPC", for_ever=True) for f in faults[: options.errors // 2]]
        wrong += sweep("full", lasting, base)
    write_result("faults", {"heads": ["fault", "tried", "went wrong", "what was found"], "rows": ROWS})
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
