"""Kills and full disks at chosen system calls of a whole session; `make faults` tries many more of them."""

import random
from collections import Counter
from pathlib import Path

import pytest

from fakes.faults import Fault, all_faults, can_inject, check_after, count_calls

pytestmark = pytest.mark.skipif(not can_inject(), reason="needs strace and the right to trace")

KILLS, ERRORS = 9, 3


@pytest.fixture(scope="module")
def counts(tmp_path_factory: pytest.TempPathFactory) -> Counter[str]:
    return count_calls(tmp_path_factory.mktemp("counted") / "stage")


def spread(counts: Counter[str], error: str | None, count: int, seed: int) -> list[Fault]:
    """Some faults of every kind of call, at places that are the same in every run."""
    chance = random.Random(seed)
    by_call: dict[str, list[Fault]] = {}
    for fault in all_faults(counts, error):
        by_call.setdefault(fault.call, []).append(fault)
    for faults in by_call.values():
        chance.shuffle(faults)
    chosen: list[Fault] = []
    while len(chosen) < count and any(by_call.values()):
        chosen += [faults.pop() for faults in by_call.values() if faults]
    return chosen[:count]


@pytest.mark.long
async def test_C5_a_kill_anywhere_costs_nothing_and_is_told_rightly(tmp_path: Path, counts):
    """No torn file, nothing shown that is not stored, no process left; the next start knows how it stands."""
    found = Counter()
    for number, fault in enumerate([Fault("renameat", 2), *spread(counts, None, KILLS - 1, seed=1)]):
        found[await check_after(fault, tmp_path / str(number))] += 1
    assert found["not reached"] <= 1, f"nothing was killed, so nothing is proven: {found}"
    assert found["done"] + found["not done"], f"no kill hit an action: {found}"


@pytest.mark.parametrize("error", ["ENOSPC", "EIO"])
async def test_a_full_or_broken_disk_costs_nothing(tmp_path: Path, counts, error: str):
    faults = spread(counts, error, ERRORS, seed=2)
    found = [await check_after(fault, tmp_path / str(number)) for number, fault in enumerate(faults)]
    assert found.count("not reached") <= 1, f"nothing went wrong, so nothing is proven: {found}"
