"""What is protected in a folder, and what a command changed there, for where it has no copy.

The folder is looked at once; after that the kernel tells of what happens in it, so that a command costs the
same however large the folder is. Where the kernel can't tell of all of it, every command looks again
(`workspace_scan`): never less is guarded.
"""

import os
from contextlib import suppress

from duckflow.safety.sandbox.view.inotify import (
    APPEARED,
    ATTRIBUTES,
    CREATED,
    DELETED,
    MODIFIED,
    FolderEvents,
)
from duckflow.safety.sandbox.view.workspace_scan import (
    MOST_NAMED,
    SKIPPED,
    WorkspaceScan,
    changed_between,
    is_protected,
    look,
)


class FolderWatch:
    """Watches one folder. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._events = FolderEvents(MODIFIED | ATTRIBUTES | DELETED)
        self._guarded: set[str] = set()
        self._touched: dict[str, bool] = {}
        """Paths that something happened to, and whether they were there before that."""
        self._scan: WorkspaceScan | None = None

    def begin(self) -> tuple[str, ...]:
        """What is protected in the folder now; what changes from here on is told by `end`."""
        self._catch_up()
        if not self._events.complete:
            self._look_at_all()
        self._touched.clear()
        self._scan = None if self._events.complete else look(self._root)
        if self._scan is not None:
            return self._scan.guarded
        return tuple(sorted(path for path in self._guarded if os.path.lexists(path)))

    def end(self) -> tuple[str, ...]:
        """The files that were made, changed or removed since, relative to the folder."""
        if self._scan is not None:
            return changed_between(self._scan, look(self._root))
        self._catch_up()
        names = (path for path, before in self._touched.items() if before or os.path.lexists(path))
        start = len(self._root) + 1
        return tuple(sorted(path[start:] for path in names)[:MOST_NAMED])

    def close(self) -> None:
        """Stop watching."""
        self._events.close()

    def _look_at_all(self) -> None:
        self._guarded.clear()
        self._events.begin()
        self._look(self._root, appeared=False)

    def _look(self, start: str, *, appeared: bool) -> None:
        """Note what is below a folder; each is watched before it is read, so nothing slips in between."""
        waiting = [start]
        while waiting and (appeared or self._events.complete):
            folder = waiting.pop()
            self._events.watch(folder)
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

    def _catch_up(self) -> None:
        """Take in what happened since."""
        for event in self._events.read():
            if not event.is_folder:
                self._touched.setdefault(event.path, not event.mask & CREATED)
            if event.mask & APPEARED:
                self._note(event.folder, event.name)
                if event.is_folder and event.name not in SKIPPED:
                    self._look(event.path, appeared=True)
