"""What is protected in a folder, and what a command changed there, for where it has no copy.

The folder is looked at once; after that the kernel tells of what happens in it, so that a command costs the
same however large the folder is. Where the kernel can't tell of all of it, every command looks again
(`workspace_scan`): never less is guarded.
"""

import ctypes
import os
from contextlib import suppress

from duckflow.safety.sandbox.child.syscalls import LINUX
from duckflow.safety.sandbox.view.secret_index import (
    BUFFER,
    CREATED,
    EVENT,
    IS_FOLDER,
    MOVE_SELF,
    MOVED_FROM,
    MOVED_TO,
    NON_BLOCKING,
    ONLY_THAT_FOLDER,
    OVERFLOW,
)
from duckflow.safety.sandbox.view.workspace_scan import (
    MOST_NAMED,
    SKIPPED,
    WorkspaceScan,
    changed_between,
    is_protected,
    look,
)

_MODIFIED, _ATTRIBUTES, _DELETED = 0x2, 0x4, 0x200
_APPEARED = CREATED | MOVED_TO
_WATCHED = _APPEARED | MOVED_FROM | MOVE_SELF | _MODIFIED | _ATTRIBUTES | _DELETED | ONLY_THAT_FOLDER

_libc = ctypes.CDLL(None, use_errno=True)


class FolderWatch:
    """Watches one folder. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._watching = -1
        self._folders: dict[int, str] = {}
        self._guarded: set[str] = set()
        self._touched: dict[str, bool] = {}
        """Paths that something happened to, and whether they were there before that."""
        self._complete = False
        self._scan: WorkspaceScan | None = None

    def begin(self) -> tuple[str, ...]:
        """What is protected in the folder now; what changes from here on is told by `end`."""
        if not self._complete or not self._catch_up():
            self._look_at_all()
        self._touched.clear()
        self._scan = None if self._complete else look(self._root)
        if self._scan is not None:
            return self._scan.guarded
        return tuple(sorted(path for path in self._guarded if os.path.lexists(path)))

    def end(self) -> tuple[str, ...]:
        """The files that were made, changed or removed since, relative to the folder."""
        if self._scan is not None:
            return changed_between(self._scan, look(self._root))
        self._complete = self._catch_up()
        names = (path for path, before in self._touched.items() if before or os.path.lexists(path))
        start = len(self._root) + 1
        return tuple(sorted(path[start:] for path in names)[:MOST_NAMED])

    def close(self) -> None:
        """Stop watching."""
        if self._watching >= 0:
            os.close(self._watching)
        self._watching = -1
        self._complete = False

    def _look_at_all(self) -> None:
        self.close()
        self._folders.clear()
        self._guarded.clear()
        self._watching = _libc.inotify_init1(NON_BLOCKING) if LINUX else -1
        self._complete = self._watching >= 0
        self._look(self._root, appeared=False)

    def _look(self, start: str, *, appeared: bool) -> None:
        """Note what is below a folder; each is watched before it is read, so nothing slips in between."""
        waiting = [start]
        while waiting and self._complete:
            folder = waiting.pop()
            self._watch(folder)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    self._note(folder, entry.name)
                    if entry.is_dir(follow_symlinks=False):
                        waiting += [entry.path] if entry.name not in SKIPPED else []
                    elif appeared:
                        self._touched.setdefault(entry.path, False)

    def _note(self, folder: str, name: str) -> None:
        if is_protected(os.path.basename(folder), name):
            self._guarded.add(f"{folder}/{name}")

    def _watch(self, folder: str) -> None:
        number = _libc.inotify_add_watch(self._watching, os.fsencode(folder), _WATCHED)
        if number < 0:
            self._complete = self._complete and not os.path.isdir(folder)
        else:
            self._folders[number] = folder

    def _catch_up(self) -> bool:
        """Take in what happened since; False if all has to be looked at again."""
        whole = self._complete
        while True:
            try:
                data = os.read(self._watching, BUFFER)
            except BlockingIOError:
                return whole and self._complete
            except OSError:
                return False
            at = 0
            while at < len(data):
                number, mask, _, length = EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0"))
                at += EVENT.size + length
                moved = mask & MOVE_SELF or (mask & MOVED_FROM and mask & IS_FOLDER)
                whole = whole and not mask & OVERFLOW and not moved
                if name and number in self._folders:
                    self._take_in(self._folders[number], name, mask)

    def _take_in(self, folder: str, name: str, mask: int) -> None:
        path = f"{folder}/{name}"
        if not mask & IS_FOLDER:
            self._touched.setdefault(path, not mask & CREATED)
        if mask & _APPEARED:
            self._note(folder, name)
            if mask & IS_FOLDER and name not in SKIPPED:
                self._look(path, appeared=True)
