"""Suggestions for the name of a file that does not exist."""

from collections.abc import Generator
from contextlib import contextmanager
from difflib import get_close_matches

from duckflow.domain.errors import ToolError
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable

_LOOKED_AT = 5000
_SHOWN = 3


@contextmanager
def suggesting(workspace: Workspace, path: str) -> Generator[None]:
    """Add similar paths that exist to a ToolError about a missing file."""
    try:
        yield
    except ToolError as exc:
        close = _nearest(workspace, path) if isinstance(exc.__cause__, FileNotFoundError) else []
        if not close:
            raise
        raise ToolError(f"{exc} There is: {', '.join(close)}.") from exc


def _nearest(workspace: Workspace, path: str) -> list[str]:
    found = workspace.list(depth=8, limit=_LOOKED_AT, skip=SKIPPED)
    files = [entry.path for entry in found.entries if entry.kind == "file"]
    name = path.rpartition("/")[2]
    same = [file for file in files if file.rpartition("/")[2] == name]
    close = same or get_close_matches(path, files, n=_SHOWN, cutoff=0.7)
    return [printable(file) for file in close[:_SHOWN]]
