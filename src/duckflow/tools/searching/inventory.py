"""List of all files below a folder, without those that the project ignores."""

import os
from pathlib import Path
from typing import NamedTuple

from duckflow.safety.files.atomic import is_temporary
from duckflow.safety.files.listing import SKIPPED, names_skipped
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.searching.ripgrep import run_ripgrep

DEEPEST = 24
_MOST = 50_000


class Inventory(NamedTuple):
    """Paths of files, relative to the workspace. `complete` is False if a limit cut the list."""

    files: list[str]
    complete: bool


async def list_all(workspace: Workspace, ripgrep: Path | None, folder: str) -> Inventory:
    """List the files below a folder, without SKIPPED folders and ignored files, which only ripgrep knows."""
    if ripgrep is None:
        skip = () if names_skipped(folder) else SKIPPED
        found = await run_in_thread(workspace.list, folder, depth=DEEPEST, limit=_MOST, skip=skip)
        return Inventory([entry.path for entry in found.entries if entry.kind == "file"], found.complete)
    output = await run_ripgrep(ripgrep, workspace.root, ["--files", *skip_arguments(folder)], folder)
    paths = [os.fsdecode(name).removeprefix("./") for name in output.data.split(b"\0")[:-1]]
    files = [path for path in paths if not is_temporary(path.rpartition("/")[2])]
    return Inventory(files, output.complete)


def skip_arguments(path: str) -> list[str]:
    """Return the arguments that keep ripgrep out of skipped folders, unless `path` names one."""
    return [] if names_skipped(path) else [f"--glob=!{name}" for name in sorted(SKIPPED)]
