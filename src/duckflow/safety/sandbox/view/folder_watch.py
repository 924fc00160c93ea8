"""Protected paths in a folder, and changes by a command that works without a copy.

The kernel reports both. Where it can't report all changes, they are found by a scan before and after. That is
limited: a change is missed beyond the limits, in folders that tools create for themselves, and where a
command resets a file's time. Protected paths are searched for everywhere, because an incomplete list would be
a security hole.
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
"""Folders that are not scanned for changes."""

MOST_FILES = 10_000
MOST_NAMED = 200


class FolderWatch:
    """Watches one folder. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names = WatchedNames(root, _wants, _enters, MODIFIED | ATTRIBUTES | DELETED)
        self._before: FileStamps | None = None

    def begin(self) -> tuple[str, ...]:
        """Return the protected paths in the folder. `end` reports changes from here on."""
        self._names.update()
        self._names.touched.clear()
        self._before = None if self._names.complete else look(self._root)
        return outermost(path for path in self._names.paths if os.path.lexists(path))

    def end(self) -> tuple[str, ...]:
        """Return the files that were created, changed or removed since, relative to the folder."""
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
    """Check a name with the one above it. The names further up have been checked before."""
    return protection_of(f"{above}/{name}") != "none"


class FileStamps(NamedTuple):
    """Stamps that identify the content of each file, by relative path, and whether all files are included."""

    files: Mapping[str, tuple[int, int, int]]
    complete: bool


def look(root: str) -> FileStamps:
    """Scan the files below a folder, nearest first, without following links."""
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
    """Return changed files in order. If a scan was cut short, compare only files that both scans saw."""
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
