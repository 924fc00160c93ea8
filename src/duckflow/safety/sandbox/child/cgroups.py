"""Cgroups below and beside that of this process, as far as the user may make them. Standard library only."""

import os
import re
from collections.abc import Iterator
from contextlib import suppress

_STALE = re.compile(r"duckflow-(\d+)")


class MemoryGroup:
    """Cgroup in which the kernel limits all memory of a command, including that of its sockets and pipes."""

    def __init__(self, place: str, *, is_v1: bool) -> None:
        self._place = place
        self._limit = "memory.limit_in_bytes" if is_v1 else "memory.max"
        self._events = "memory.oom_control" if is_v1 else "memory.events"

    def limit(self, size: int) -> None:
        """Set the largest number of bytes that all processes here may use together."""
        with suppress(OSError):
            write(f"{self._place}/{self._limit}", str(size))

    def reached(self) -> bool:
        """Return whether the kernel killed a process because of the limit."""
        words = read(f"{self._place}/{self._events}").split()
        return "oom_kill" in words and words[words.index("oom_kill") + 1] != "0"


def enter_memory_group() -> MemoryGroup | None:
    """Move this process, with its later children, into a new cgroup. None where that is not permitted."""
    for above, is_v1 in memory_places():
        with suppress(OSError):
            made = make_cgroup(above)
            write(f"{made}/cgroup.procs", str(os.getpid()))
            return MemoryGroup(made, is_v1=is_v1)
    return None


def remove_memory_groups() -> None:
    """Remove the cgroups that ended processes had for memory."""
    for above, _ in memory_places():
        with suppress(OSError):
            _sweep(above)


def memory_places() -> Iterator[tuple[str, bool]]:
    """Yield the cgroups in which the user may make some that limit memory; True for version 1."""
    for own, is_v1 in own_cgroups("memory"):
        # In version 2, only the root and cgroups without processes give their children a limit.
        above = own if is_v1 or not os.path.exists(f"{own}/cgroup.type") else os.path.dirname(own)
        able = is_v1 or "memory" in read(f"{above}/cgroup.subtree_control").split()
        if able and all(os.access(place, os.W_OK) for place in (above, f"{above}/cgroup.procs")):
            yield above, is_v1


def own_cgroups(controller: str) -> Iterator[tuple[str, bool]]:
    """Yield the folders of this process's cgroups: of version 2, then (with True) of version 1."""
    own = dict(line.split(":", 2)[1:] for line in read("/proc/self/cgroup").splitlines())
    mounts = read("/proc/self/mountinfo").splitlines()
    for line in sorted(mounts, key=lambda line: " - cgroup2 " not in line):
        words, _, kind = line.partition(" - ")
        is_v1 = kind.startswith("cgroup ") and controller in kind.split()[-1].split(",")
        if not kind.startswith("cgroup2 ") and not is_v1:
            continue
        inner, mounted = words.split()[3:5]
        path = own.get("", "")
        if is_v1:
            path = next((at for name, at in own.items() if controller in name.split(",")), "")
        folder = os.path.normpath(f"{mounted}/{os.path.relpath(path, inner)}") if path else ""
        if folder and (folder == mounted or folder.startswith(f"{mounted}/")):
            yield folder, is_v1


def make_cgroup(above: str) -> str:
    """Make a cgroup named after this process, and remove those of processes that were killed."""
    _sweep(above)
    made = f"{above}/duckflow-{os.getpid()}"
    os.mkdir(made)
    return made


def _sweep(above: str) -> None:
    for name in os.listdir(above):
        found = _STALE.fullmatch(name)
        if found and (found[1] == str(os.getpid()) or not os.path.exists(f"/proc/{found[1]}")):
            for folder, _, _ in os.walk(f"{above}/{name}", topdown=False):
                with suppress(OSError):
                    os.rmdir(folder)


def read(path: str) -> str:
    """Return the text of a file, empty if it can't be read."""
    with suppress(OSError), open(path, encoding="utf-8", errors="surrogateescape") as file:
        return file.read()
    return ""


def write(path: str, text: str) -> None:
    """Write to a file that exists."""
    with open(path, "w", encoding="ascii") as file:
        file.write(text)
