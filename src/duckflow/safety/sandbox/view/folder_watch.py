"""Names of interest in a folder, and changes in it, as reported by the kernel (inotify).

Where it can't report all changes, the names are searched for again each time, because an incomplete list
would be a security hole, and changes are found by a scan before and after. That misses changes beyond its
limits and in folders that tools create for themselves.
"""

import os
import struct
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import NamedTuple

from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.paths import FileStamp, outermost, stamp_of
from duckflow.safety.policy.protected import protection_of
from duckflow.safety.sandbox.view.visibility import entries_of
from duckflow.safety.syscalls import LINUX, c_call

_MODIFIED, _ATTRIBUTES, _MOVED_FROM, _MOVED_TO, _CREATED, _DELETED = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
_MOVE_SELF, _OVERFLOW, _ONLY_THAT_FOLDER, _IS_FOLDER = 0x800, 0x4000, 0x03000000, 0x40000000
_APPEARED = _CREATED | _MOVED_TO
_ALWAYS = _APPEARED | _MOVED_FROM | _MOVE_SELF | _ONLY_THAT_FOLDER
_FILE_EVENTS = _MODIFIED | _ATTRIBUTES | _DELETED

_NON_BLOCKING = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16

NOT_SCANNED = SKIPPED | {".hypothesis", "target"}
"""Folders that are not scanned for changes."""

MOST_FILES = 10_000
MOST_NAMED = 200


class FolderEvents:
    """Watches folders, but not the folders below them. Blocking; one thread at a time."""

    def __init__(self) -> None:
        self.complete = False
        """True if the kernel has reported all events so far, and their paths are known."""
        self._opened = -1
        self._folders: dict[int, str] = {}

    def begin(self) -> None:
        """Drop all watches and prepare for new ones."""
        self.close()
        with suppress(OSError):
            self._opened = c_call("inotify_init1", _NON_BLOCKING) if LINUX else -1
        self.complete = self._opened >= 0

    def watch(self, folder: str, mask: int) -> None:
        """Make the kernel report the events in `mask` for this folder."""
        try:
            number = c_call("inotify_add_watch", self._opened, os.fsencode(folder), mask)
        except OSError:
            self.complete = self.complete and not os.path.isdir(folder)
        else:
            self._folders[number] = folder

    def read(self) -> Iterator[tuple[str, str, int]]:
        """Yield the events since the last call: the folder, the name in it, and the event mask."""
        while True:
            try:
                data = os.read(self._opened, _BUFFER)
            except BlockingIOError:
                return
            except OSError:
                self.complete = False
                return
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
                at += _EVENT.size + length
                if mask & (_OVERFLOW | _MOVE_SELF) or (mask & _MOVED_FROM and mask & _IS_FOLDER):
                    self.complete = False
                if name and number in self._folders:
                    yield self._folders[number], name, mask

    def close(self) -> None:
        """Stop watching."""
        if self._opened >= 0:
            os.close(self._opened)
        self._opened = -1
        self._folders.clear()
        self.complete = False


class WatchedNames:
    """Watches a tree for paths that `wants(folder, name)`, in folders that `enters(path)`. One thread."""

    def __init__(
        self, root: str, wants: Callable[[str, str], bool], enters: Callable[[str], bool], also: int = 0
    ) -> None:
        self.paths: set[str] = set()
        self.touched: dict[str, bool] = {}
        """Files that had an event, and whether each one existed before."""
        self._root = root
        self._wants = wants
        self._enters = enters
        self._mask = _ALWAYS | also
        self._events = FolderEvents()

    @property
    def complete(self) -> bool:
        """True if the kernel has reported all events so far, and their paths are known."""
        return self._events.complete

    def update(self) -> None:
        """Bring the paths up to date, and forget the touched files."""
        self.catch_up()
        if not self.complete:
            self._begin()
        self.touched.clear()

    def catch_up(self) -> None:
        """Process the events since the last call."""
        for folder, name, mask in self._events.read():
            path = f"{folder}/{name}"
            if not mask & _IS_FOLDER:
                self.touched.setdefault(path, not mask & _CREATED)
            if mask & _APPEARED:
                self._note(folder, name)
                if mask & _IS_FOLDER and self._enters(path):
                    self._look(path, appeared=True)

    def close(self) -> None:
        """Stop watching."""
        self._events.close()

    def _begin(self) -> None:
        """Scan the whole tree, and watch it from now on."""
        self._events.begin()
        self.paths.clear()
        self._look(self._root, appeared=False)

    def _look(self, start: str, *, appeared: bool) -> None:
        """Record names below a folder. Each folder is watched before it is read, so nothing is missed."""
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            self._events.watch(folder, self._mask)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    self._note(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [entry.path] if self._enters(entry.path) else []
                    elif appeared:
                        self.touched.setdefault(entry.path, False)

    def _note(self, folder: str, name: str) -> None:
        if self._wants(folder, name):
            self.paths.add(f"{folder}/{name}")


class FolderWatch:
    """Reports changed files and protected paths of one folder. Blocking; only for one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._names = WatchedNames(root, _wants, _enters, _FILE_EVENTS)
        self._before: FileStamps | None = None

    def begin(self) -> tuple[str, ...]:
        """Return the protected paths in the folder. `end` reports changes made after this call."""
        self._names.update()
        self._before = None if self._names.complete else look(self._root)
        return outermost(path for path in self._names.paths if os.path.lexists(path))

    def end(self) -> tuple[str, ...]:
        """Return the files created, changed or removed since `begin`, relative to the folder."""
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
    """Check a name together with the folder's name. The folders further up have been checked before."""
    return protection_of(f"{above}/{name}") != "none"


class FileStamps(NamedTuple):
    """For each file, by relative path, its time, size and inode; and whether all files are included."""

    files: Mapping[str, FileStamp]
    complete: bool


def look(root: str) -> FileStamps:
    """Scan the files below a folder, without following links. Files near the top come first."""
    files: dict[str, FileStamp] = {}
    waiting = deque([root])
    while waiting:
        for entry in entries_of(waiting.popleft()):
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in NOT_SCANNED else []
            elif len(files) > MOST_FILES:
                return FileStamps(files, complete=False)
            elif stamp := stamp_of(entry.path):
                files[entry.path[len(root) + 1 :]] = stamp
    return FileStamps(files, complete=True)


def changed_between(before: FileStamps, after: FileStamps) -> tuple[str, ...]:
    """Return the changed files, sorted. If a scan was cut short, compare only files that both scans saw."""
    whole = before.complete and after.complete
    names = before.files.keys() | after.files.keys() if whole else before.files.keys() & after.files.keys()
    differing = sorted(name for name in names if before.files.get(name) != after.files.get(name))
    return tuple(differing[:MOST_NAMED])
