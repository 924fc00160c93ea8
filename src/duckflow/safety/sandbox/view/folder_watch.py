"""What is protected in a folder, and what a command changed there, for where it has no copy.

The kernel tells of both. Where it can't tell of all changes, they are found by a look before and after. That
is bounded, so it is at best good: past its limits, in folders that tools make for themselves, and where a
command puts a file's time back, a change goes unseen. What is protected is looked for everywhere: a list that
is cut is a hole.
"""

import os
from collections import deque
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.paths import outermost
from duckflow.safety.policy.protected import protection_of
from duckflow.safety.sandbox.view.visibility import entries_of
from duckflow.safety.sandbox.view.watched_names import ATTRIBUTES, DELETED, MODIFIED, WatchedNames

NOT_SCANNED = SKIPPED | {".hypothesis", "target"}
"""Folders that are not looked into for changes."""

MOST_FILES = 10_000
MOST_NAMED = 200


class FolderWatch:
    """Watches one folder. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names = WatchedNames(root, _wants, _enters, MODIFIED | ATTRIBUTES | DELETED)
        self._before: FileStamps | None = None

    def begin(self) -> tuple[str, ...]:
        """What is protected in the folder now; what changes from here on is told by `end`."""
        self._names.update()
        self._names.touched.clear()
        self._before = None if self._names.complete else look(self._root)
        return outermost(path for path in self._names.paths if os.path.lexists(path))

    def end(self) -> tuple[str, ...]:
        """The files that were made, changed or removed since, relative to the folder."""
        if self._before is not None:
            return changed_between(self._before, look(self._root))
        self._names.catch_up()
        names = (path for path, before in self._names.touched.items() if before or os.path.lexists(path))
        start = len(self._root) + 1
        return tuple(sorted(path[start:] for path in names)[:MOST_NAMED])

    def close(self) -> None:
        """Stop watching."""
        self._names.close()


def _enters(path: str) -> bool:
    return os.path.basename(path) not in SKIPPED


def _wants(folder: str, name: str) -> bool:
    return _is_protected(os.path.basename(folder), name)


@lru_cache(20_000)
def _is_protected(above: str, name: str) -> bool:
    """By its own name and the one above; the names further up were looked at before."""
    return protection_of(f"{above}/{name}") != "none"


class FileStamps(NamedTuple):
    """What identifies the content of each file, by relative path; whether there are no others."""

    files: Mapping[str, tuple[int, int, int]]
    complete: bool


def look(root: str) -> FileStamps:
    """Look at the files below a folder, nearest first; links are not followed."""
    files: dict[str, tuple[int, int, int]] = {}
    waiting = deque([root])
    while waiting:
        for entry in entries_of(waiting.popleft()):
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in NOT_SCANNED else []
            elif len(files) > MOST_FILES:
                return FileStamps(files, complete=False)
            else:
                _note(files, entry, root)
    return FileStamps(files, complete=True)


def changed_between(before: FileStamps, after: FileStamps) -> tuple[str, ...]:
    """Made, changed and removed files, in order; where a look was cut short, only what both have seen."""
    whole = before.complete and after.complete
    names = before.files.keys() | after.files.keys() if whole else before.files.keys() & after.files.keys()
    differing = sorted(name for name in names if before.files.get(name) != after.files.get(name))
    return tuple(differing[:MOST_NAMED])


def _note(files: dict[str, tuple[int, int, int]], entry: os.DirEntry[str], root: str) -> None:
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return  # gone meanwhile
    files[entry.path[len(root) + 1 :]] = (status.st_mtime_ns, status.st_size, status.st_ino)
