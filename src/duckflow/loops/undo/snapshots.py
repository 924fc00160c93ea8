"""Snapshots of files that a command may change, so that undo also covers commands without a copy.

This is cheap in most projects: ignored and protected files are skipped, and a file is read again only if its
times changed. If there is too much to copy, nothing is copied, and undo reports that.
"""

import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.files.changes import FileChange, change_of
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import protection_of
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.tools.searching.listing import list_all

_SETTLED_NS = 50_000_000  # within this time, a file may be written again without getting a new timestamp
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")

Seen = Mapping[str, tuple[str, int]]
"""SHA-256 and permission bits, by path."""


class _Known(NamedTuple):
    stamp: tuple[int, ...]
    digest: str
    mode: int
    size: int


@dataclass(eq=False)
class Snapshots:
    """Snapshots of one workspace, kept with the earlier file contents for undo."""

    _workspace: Workspace
    _kept: KeptFiles
    _ripgrep: Path | None
    _most_files: int
    """Largest number of files to copy; 0 if nothing is copied."""
    _most_bytes: int
    _known: dict[str, _Known] = field(default_factory=dict[str, _Known])
    _session_id: str | None = None

    @asynccontextmanager
    async def around(self, access: Access) -> AsyncGenerator[None]:
        """Add the changes made inside the block to the changes of the action, if a snapshot was possible."""
        before: Seen | None = None
        with suppress(ToolError, UserError):
            before = await self._take(access.owner.session_id)
        try:
            yield
        finally:
            if before is not None:
                with suppress(ToolError, UserError):
                    files = await self._listed()
                    access.add(*await run_in_thread(self._compare, access.owner, before, files))

    def close(self) -> None:
        """Drop the snapshot, which is needed only while commands can run."""
        if self._session_id is not None:
            self._kept.drop_snapshot(self._session_id)

    async def _take(self, session_id: str) -> Seen | None:
        files = await self._listed()
        return await run_in_thread(self._copy, session_id, files) if files is not None else None

    async def _listed(self) -> list[str] | None:
        if not self._most_files or not self._kept.limit:
            return None
        inventory = await list_all(self._workspace, self._ripgrep, ".")
        if not inventory.complete or len(inventory.files) > self._most_files:
            return None
        return [path for path in inventory.files if protection_of(path) in ("none", "guarded")]

    def _copy(self, session_id: str, files: Iterable[str]) -> Seen | None:
        known: dict[str, _Known] = {}
        left = self._most_bytes
        for path in files:
            with suppress(ToolError):
                if (one := self._look(path)) is not None:
                    known[path] = one
                    left -= one.size
            if left < 0:
                return None
        self._known = known
        self._session_id = session_id
        seen = {path: (one.digest, one.mode) for path, one in known.items()}
        self._kept.take_snapshot(session_id, seen, self._read)
        return seen

    def _look(self, path: str) -> _Known | None:
        status = self._workspace.status(path)
        if status is None:
            return None
        if status.size > self._most_bytes:
            raise ToolError(f"{path}: is too large to copy.")
        known = self._known.get(path)
        if known is not None and known.stamp == status.stamp:
            return known
        content = self._workspace.look(path)
        if content is None:
            return None
        settled = status.stamp[-1] + _SETTLED_NS < time.time_ns()
        return _Known(status.stamp if settled else (), content.digest, content.mode, status.size)

    def _read(self, path: str) -> bytes | None:
        try:
            content = self._workspace.look(path)
        except ToolError:
            return None
        return content.data if content else None

    def _compare(
        self, owner: ChangeOwner, before: Seen, files: Iterable[str] | None
    ) -> tuple[FileChange, ...]:
        """Return the changes since the snapshot. New files count only if the ignore rules did not change."""
        paths = dict.fromkeys((*before, *(files or ())))
        changes = [change for path in paths if (change := self._change(path, before.get(path)))]
        if any(change.path.rpartition("/")[2] in _IGNORE_FILES for change in changes):
            changes = [change for change in changes if change.before is not None]
        self._kept.keep(owner, changes, {})
        return tuple(changes)

    def _change(self, path: str, before: tuple[str, int] | None) -> FileChange | None:
        try:
            now = self._look(path)
        except ToolError:
            return None
        after = (now.digest, now.mode) if now else None
        return change_of(path, before, after) if after != before else None
