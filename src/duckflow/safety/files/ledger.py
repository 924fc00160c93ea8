"""Compare recorded changes with the files as they are now (SAFETY 12)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FileChange
from duckflow.safety.files.workspace import Workspace

Finding = Literal["done", "not_done", "unknown"]


def find(workspace: Workspace, change: FileChange) -> Finding:
    """Return whether a recorded change was made, judged by the current file."""
    try:
        now = workspace.paths.now(change.path)
    except ToolError:
        return "unknown"
    found = now.word if now else None
    if found == change.after:
        return "done"
    return "not_done" if found == change.before else "unknown"


def made_of(workspace: Workspace, intended: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return the intended changes that were made."""
    return tuple(change for change in intended if find(workspace, change) == "done")
