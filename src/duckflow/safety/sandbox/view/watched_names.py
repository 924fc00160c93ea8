"""Names in a tree of folders that somebody wants to know of, kept up to date by the kernel (inotify).

The tree is looked at once; after that the kernel tells of what happens in it, so that knowing costs the same
however large it is. If the kernel can't tell of all of it, everything is looked at again each time: nothing
is missed.
"""

import os
from collections.abc import Callable
from contextlib import suppress

from duckflow.safety.sandbox.view.folder_events import IS_FOLDER, FolderEvents

MODIFIED, ATTRIBUTES, DELETED = 0x2, 0x4, 0x200
"""What else can be told of files."""

_CREATED, _MOVED_FROM, _MOVED_TO, _MOVE_SELF = 0x100, 0x40, 0x80, 0x800
_ONLY_THAT_FOLDER = 0x03000000
_APPEARED = _CREATED | _MOVED_TO
_ALWAYS = _APPEARED | _MOVED_FROM | _MOVE_SELF | _ONLY_THAT_FOLDER


class WatchedNames:
    """The paths below a folder of which `wants(folder, name)` holds. Blocking; one thread at a time.

    `enters(path)`: whether to look into a folder. `also`: what is to be told of files besides their names.
    """

    def __init__(
        self, root: str, wants: Callable[[str, str], bool], enters: Callable[[str], bool], also: int = 0
    ) -> None:
        self.paths: set[str] = set()
        self.touched: dict[str, bool] = {}
        """Files that something happened to, and whether they were there before that."""
        self._root = root
        self._wants = wants
        self._enters = enters
        self._mask = _ALWAYS | also
        self._events = FolderEvents()

    @property
    def complete(self) -> bool:
        """Whether the kernel has told of all that happened, at the paths that are known."""
        return self._events.complete

    def update(self) -> None:
        """Know what is there now."""
        self.catch_up()
        if not self.complete:
            self._begin()

    def catch_up(self) -> None:
        """Take in what happened since."""
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
        """Look at all of it, and watch it from now on."""
        self._events.begin()
        self.paths.clear()
        self._look(self._root, appeared=False)

    def _look(self, start: str, *, appeared: bool) -> None:
        """Note names below a folder; each is watched before it is read, so nothing slips in between."""
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
