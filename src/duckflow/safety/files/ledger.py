"""The ledger: every change of a file is written down, with what it does away with, before it is made."""

from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Literal, NamedTuple

from duckflow.domain.changes import FileChange
from duckflow.domain.errors import ToolError, UserError
from duckflow.safety.files.atomic import Content, FilePlace
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import KeptFiles, Mark

Finding = Literal["done", "not_done", "unknown"]


class _Open(NamedTuple):
    """An action under way, and what it has done to files."""

    mark: Mark
    made: list[FileChange]


# Both loops run actions at once; a thread started for one of them inherits this.
_under_way: ContextVar[_Open | None] = ContextVar("action_under_way", default=None)
_NOBODY = Mark("", "", "")


class Ledger:
    """What `Workspace` tells of its changes, kept for undo and for the time after a crash (SAFETY 11, 12)."""

    def __init__(self, kept: KeptFiles) -> None:
        self.kept = kept

    @contextmanager
    def recording(self, mark: Mark) -> Generator[list[FileChange]]:
        """What is changed inside the block, here or in threads begun here, is this action's."""
        made: list[FileChange] = []
        token = _under_way.set(_Open(mark, made))
        try:
            yield made
        finally:
            _under_way.reset(token)

    def keep(self, place: FilePlace, before: Content | None, after: Content | None) -> None:
        """Write down one change that is about to be made; ToolError where that can't be done."""
        change = FileChange(
            path=place.real,
            before=before.digest if before else None,
            after=after.digest if after else None,
            mode_before=before.mode if before else None,
            mode_after=after.mode if after else None,
            folders=place.folders,
        )
        under_way = _under_way.get()
        contents = {before.digest: before.data} if before else {}
        try:
            self.kept.keep(under_way.mark if under_way else _NOBODY, (change,), contents)
        except UserError as exc:
            raise ToolError(
                f"{place.path}: what it was before could not be kept for undo ({exc}); nothing was changed."
            ) from exc
        if under_way is not None:
            under_way.made.append(change)


def find(workspace: Workspace, change: FileChange) -> Finding:
    """Whether a change that was written down was made, by what is on the disk now."""
    try:
        now = workspace.look(change.path)
    except ToolError:
        return "unknown"
    found = now.digest if now else None
    if found == change.after:
        return "done"
    return "not_done" if found == change.before else "unknown"


def made_of(workspace: Workspace, intended: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Those of the intended changes that were made."""
    return tuple(change for change in intended if find(workspace, change) == "done")
