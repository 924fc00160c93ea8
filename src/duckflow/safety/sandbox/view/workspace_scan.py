"""A look at a workspace before and after a command: what is protected in it, and what the command changed.

It is bounded, so it is at best good: past its limits, in folders that tools make for themselves, and where a
command puts a file's time back, a change goes unseen.
"""

import os
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.policy.protected import protection_of

NOT_SCANNED = SKIPPED | {".hypothesis", "target"}
"""Folders that are not looked into."""

MOST_FILES = 10_000
MOST_NAMED = 200


class WorkspaceScan(NamedTuple):
    """What identifies the content of each file, by relative path, and what is protected, by absolute one."""

    files: Mapping[str, tuple[int, int, int]]
    guarded: tuple[str, ...]
    complete: bool


def look(root: str) -> WorkspaceScan:
    """Look at the files below a folder, nearest first; links are not followed.

    Files are noted up to a number; what is protected is looked for everywhere: a list that is cut is a hole.
    """
    files: dict[str, tuple[int, int, int]] = {}
    guarded: list[str] = []
    waiting = deque([(root, "", False)])
    complete = True
    while waiting:
        folder, above, covered = waiting.popleft()
        for entry in _entries(folder):
            protected = not covered and is_protected(above, entry.name)
            if protected:
                guarded.append(entry.path)
            if not entry.is_dir(follow_symlinks=False):
                complete = complete and len(files) <= MOST_FILES
                if complete:
                    _note(files, entry, root)
            elif entry.name not in NOT_SCANNED:
                waiting.append((entry.path, entry.name, covered or protected))
    return WorkspaceScan(files, tuple(guarded), complete=complete)


def changed_between(before: WorkspaceScan, after: WorkspaceScan) -> tuple[str, ...]:
    """Made, changed and removed files, in order; where a look was cut short, only what both have seen."""
    whole = before.complete and after.complete
    names = before.files.keys() | after.files.keys() if whole else before.files.keys() & after.files.keys()
    differing = sorted(name for name in names if before.files.get(name) != after.files.get(name))
    return tuple(differing[:MOST_NAMED])


@lru_cache(20_000)
def is_protected(above: str, name: str) -> bool:
    """By its own name and the one above; the names further up were looked at before."""
    return protection_of(f"{above}/{name}") != "none"


def _note(files: dict[str, tuple[int, int, int]], entry: os.DirEntry[str], root: str) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return  # gone meanwhile
    files[entry.path[len(root) + 1 :]] = (status.st_mtime_ns, status.st_size, status.st_ino)


def _entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []  # gone, or not ours to read
