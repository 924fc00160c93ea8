"""Watching an action: what it does to files, found out however it ends."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager

from duckflow.domain.changes import FileChange, ToolEffect
from duckflow.domain.errors import ToolError
from duckflow.domain.events import ActionFinished, ErrorReported
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.safety.files.ledger import Ledger, made_of
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import Mark


class Watch:
    """One for both loops."""

    def __init__(self, workspace: Workspace, ledger: Ledger, snapshots: Snapshots) -> None:
        self._workspace = workspace
        self._ledger = ledger
        self._snapshots = snapshots

    @asynccontextmanager
    async def over(self, mark: Mark, effect: ToolEffect) -> AsyncGenerator[list[FileChange]]:
        """What is about to change, or was seen to have changed, inside the block."""
        with self._ledger.recording(mark) as made:
            if effect != "execute":
                yield made
                return
            async with self._snapshots.around(mark, made):
                yield made

    def describe(
        self, ended: ActionFinished, made: Iterable[FileChange], changed: tuple[str, ...] = ()
    ) -> ActionFinished:
        """The end of an action with what it did to files; what did not end well is compared with the disk."""
        sure = tuple(made) if ended.outcome == "ok" else made_of(self._workspace, made)
        paths = tuple(dict.fromkeys((*changed, *(change.path for change in sure))))
        removed = tuple(path for path in paths if not self._there(path))
        return ended.model_copy(update={"changed": paths, "removed": removed, "changes": sure})

    def notices(self) -> tuple[ErrorReported, ...]:
        """What the user should know of where changes are written down, once."""
        return self._ledger.kept.take_notices()

    def _there(self, path: str) -> bool:
        try:
            return self._workspace.status(path) is not None
        except ToolError:
            return True
