"""Names of interest in a tree of folders, kept up to date by kernel events (inotify).

The tree is scanned once. After that the kernel reports changes, so that an update costs the same for any
size. If the kernel can't report all changes, the tree is scanned again each time, so that nothing is missed.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from duckflow.safety.sandbox.view.folder_events import IS_FOLDER, FolderEvents

MODIFIED, ATTRIBUTES, DELETED = 0x2, 0x4, 0x200
"""Additional events to report for files."""

_CREATED, _MOVED_FROM, _MOVED_TO, _MOVE_SELF = 0x100, 0x40, 0x80, 0x800
_ONLY_THAT_FOLDER = 0x03000000
_APPEARED = _CREATED | _MOVED_TO
_ALWAYS = _APPEARED | _MOVED_FROM | _MOVE_SELF | _ONLY_THAT_FOLDER


class WatchedNames:
    """Paths that `wants(folder, name)`, in folders that `enters(path)`. Blocking; one thread at a time."""

    def __init__(
        self, root: str, wants: Callable[[str, str], bool], enters: Callable[[str], bool], also: int = 0
    ) -> None:
        self.paths: set[str] = set()
        self.touched: dict[str, bool] = {}
        """Files with an event, and whether they existed before it."""
        self._root = root
        self._wants = wants
        self._enters = enters
        self._mask = _ALWAYS | also
        self._events = FolderEvents()

    @property
    def complete(self) -> bool:
        """True if the kernel has reported all events, at paths that are known."""
        return self._events.complete

    def update(self) -> None:
        """Bring the paths up to date."""
        self.catch_up()
        if not self.complete:
            self._begin()

    def catch_up(self) -> None:
        """Process the events since the last call."""
        for folder, name, mask in self._events.read():
            path = f"{folder}/{name}"
            if not mask & IS_FOLDER:
                self.touched.setdefault(path, not mask & _CREATED)
            if mask & _APPEARED:
                self._note(folder, name)
                if mask & IS_FOLDER and self._enters(path):
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
