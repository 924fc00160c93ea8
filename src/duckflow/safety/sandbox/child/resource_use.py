"""Resource use of a running command: processes, memory and disk space. Standard library only.

Processes and their private memory are checked each tick. Files, and memory that several processes share or
that belongs to none (`memfd`), take longer and are checked only as often as keeps their share of the time
small.
"""

import os
import stat
import time
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from duckflow.safety.sandbox.child.process_tree import process_tree, read_proc

_PAGE = os.sysconf("SC_PAGE_SIZE")
_MB = 1_000_000
_BLOCK = 512
_OF_EACH = 1024
"""Bytes added for each file besides its content; otherwise millions of empty files would count as 0."""

_OWN_PROCESSES = 3
"""Number of processes that the sandbox adds to those of a command."""

_FIRST_LOOK_S = 0.2
_SHARE_OF_TIME = 20
_IN_MEMORY = ("/memfd:", "/SYSV", "/dev/zero")


class ResourceUse:
    """Compares the resources that one command uses with its limits."""

    def __init__(self, order: dict[str, Any]) -> None:
        self._limits: dict[str, int] = order["limits"]
        self._places: tuple[str, ...] = tuple(order["disk"])
        self._most_disk = self._limits["disk_mb"] * _MB
        self._most_memory = self._limits["memory_mb"] * _MB
        self._free = _free_bytes(self._places)
        self._written = _written_bytes([os.getpid()])
        self._look_at = time.monotonic() + _FIRST_LOOK_S

    def reached(self) -> str | None:
        """Return the name of a limit that the processes below this one have exceeded, None otherwise."""
        most = self._limits["processes"] + _OWN_PROCESSES
        below = process_tree(os.getpid(), most)
        if len(below) > most:
            return "processes"
        own, whole = _resident_bytes(below)
        if own > self._most_memory:
            return "memory_mb"
        begun = time.monotonic()
        if begun < self._look_at:
            return None
        unmapped, deleted = _unlinked_bytes(below)
        shared = _shared_bytes(below) if whole > self._most_memory else 0
        # Memory that is both mapped and open is part of both numbers, so count only the larger number.
        if own + max(unmapped, shared) > self._most_memory:
            return "memory_mb"
        full = deleted + sum(map(_bytes_below, self._places)) > self._most_disk or self._wrote_all(below)
        self._look_at = time.monotonic() + max(_FIRST_LOOK_S, _SHARE_OF_TIME * (time.monotonic() - begun))
        return "disk_mb" if full else None

    def left_too_much(self) -> bool:
        """Return whether the command left too much data. For its end, when none of its processes runs."""
        return any(_bytes_below(one) > self._most_disk for one in self._places[:1]) or self._wrote_all([])

    def _wrote_all(self, below: list[int]) -> bool:
        """Return whether the command wrote too much, counting hidden files if they take up disk space."""
        if _written_bytes([os.getpid(), *below]) - self._written <= self._most_disk:
            return False
        return not self._places or self._free - _free_bytes(self._places) > self._most_disk


def _resident_bytes(processes: Iterable[int]) -> tuple[int, int]:
    """Return two memory sizes: private memory, and all memory with shared pages counted for each process."""
    own = whole = 0
    for process in processes:
        numbers = read_proc(f"{process}/statm").split()
        if len(numbers) > 2:
            own += (int(numbers[1]) - int(numbers[2])) * _PAGE
            whole += int(numbers[1]) * _PAGE
    return own, whole


def _shared_bytes(processes: Iterable[int]) -> int:
    """Return the shared memory that belongs to no file, each page counted once."""
    return sum(_number(read_proc(f"{process}/smaps_rollup"), b"Pss_Shmem:") * 1024 for process in processes)


def _written_bytes(processes: Iterable[int]) -> int:
    """Return the bytes that processes and their ended children wrote to disk, 0 if the kernel lacks it."""
    return sum(_number(read_proc(f"{process}/io"), b"\nwrite_bytes:") for process in processes)


def _number(text: bytes, name: bytes) -> int:
    words = text.partition(name)[2].split(maxsplit=1)
    return int(words[0]) if words else 0


def _unlinked_bytes(processes: Iterable[int]) -> tuple[int, int]:
    """Return two sizes of open files that have no name: those in memory and those on a disk."""
    found: dict[tuple[int, int], tuple[bool, int]] = {}
    for process in processes:
        folder = f"/proc/{process}/fd"
        with suppress(OSError):
            for name in os.listdir(folder):
                with suppress(OSError):
                    status = os.stat(f"{folder}/{name}")
                    if status.st_nlink == 0 and stat.S_ISREG(status.st_mode):
                        in_memory = os.readlink(f"{folder}/{name}").startswith(_IN_MEMORY)
                        found[status.st_dev, status.st_ino] = in_memory, status.st_blocks * _BLOCK
    in_memory = sum(size for memory, size in found.values() if memory)
    return in_memory, sum(size for _, size in found.values()) - in_memory


def _bytes_below(top: str) -> int:
    """Return the size of a folder and everything below it, as far as it is readable.

    Holes count, because the disk space is used as soon as something fills them or copies the file.
    """
    total, waiting = 0, [top]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                with suppress(OSError):
                    status = entry.stat(follow_symlinks=False)
                    total += max(status.st_blocks * _BLOCK, status.st_size) + _OF_EACH
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
    return total


def _free_bytes(places: tuple[str, ...]) -> int:
    with suppress(OSError):
        for place in places[:1]:
            found = os.statvfs(place)
            return found.f_bfree * found.f_frsize
    return 0
