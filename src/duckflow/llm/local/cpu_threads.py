"""How many processor cores there are for us, and how many threads an embedded model gets."""

import os
from pathlib import Path

_QUOTA = Path("/sys/fs/cgroup/cpu.max")


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores this process may use; in a container often fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text(encoding="ascii").split()
        return max(1, min(cores, int(allowed) // int(period)))
    except (OSError, ValueError):  # no such limit, or "max"
        return cores


def thread_counts(cores: int, wanted: int | None) -> tuple[int, int]:
    """Threads for writing and for reading the prompt."""
    if wanted is not None:
        return wanted, wanted
    # One core left free keeps the speed steady, but of two it would be half of the speed.
    return (cores if cores <= 2 else cores - 1), cores
