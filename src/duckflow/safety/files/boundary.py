"""Names that belong to the workspace, and the closed folders inside it. Opens no files."""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from duckflow.domain.errors import ToolError, UsageError
from duckflow.safety.paths import relative_path
from duckflow.safety.policy.protected import STRENGTH, Protection, protection_of, within

_DELETED = " (deleted)"  # suffix that Linux gives the name of an open file that was removed


class Boundary:
    """Names of the workspace, and the folders that are closed to tools."""

    def __init__(self, root: Path, denied: Iterable[Path] = ()) -> None:
        self.root = Path(os.path.realpath(root))
        self._names = _names(root)
        self.denied = tuple(name for folder in denied for name in _names(folder))

    def relative(self, path: str, *, folder: bool = False) -> str:
        """Return a path that the model wrote as a path relative to the workspace."""
        return relative_path(path, self._names, folder=folder)

    def protection(self, path: str) -> Protection:
        """Return the protection of a relative path, by its names and its location."""
        absolute = f"{self.root}/{path}"
        if any(within(absolute, folder) for folder in self.denied):
            return "denied"
        found = protection_of(path)
        if path.endswith(_DELETED) and found == "none":
            found = protection_of(path.removesuffix(_DELETED))
        return found

    def admit(self, path: str, real: str) -> None:
        """Raise ToolError if either path is closed, or `real` has stronger protection than `path`."""
        written = self.protection(path)
        found = written if real == path else self.protection(real)
        if "denied" in (written, found):
            raise ToolError(f"{path}: belongs to Duckflow itself and is closed to tools.")
        if STRENGTH[found] > STRENGTH[written]:
            raise ToolError(f"{path}: leads to {real}, which is protected; name that path itself.")


def refuse_wide_folder(folder: Path, env: Mapping[str, str]) -> None:
    """Raise UsageError if the workspace would be the home folder or a folder above it (SAFETY 21)."""
    root, home = os.path.realpath(folder), env.get("HOME", "")
    if root == "/" or (home and Path(os.path.realpath(home)).is_relative_to(root)):
        raise UsageError("workspace.too_wide", path=str(folder.absolute()))


def _names(folder: Path) -> tuple[str, str]:
    """Return the real path of a folder and the absolute path as the user wrote it."""
    return os.path.realpath(folder), str(folder.absolute())
