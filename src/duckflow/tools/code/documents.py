"""The files as a server must see them: those it has open, and what changed on the disk since it looked."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from duckflow.domain.errors import ToolError
from duckflow.safety.files.listing import SKIPPED
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import STRENGTH
from duckflow.tools.editing.text_form import MARK

_DEEPEST, _MOST = 24, 50_000
CREATED, CHANGED, DELETED = 1, 2, 3
"""Kinds of changes, as the protocol numbers them."""


class OpenDocument(NamedTuple):
    """A file that the server has open. Its `text` counts for the server, not the file on the disk."""

    text: str
    version: int
    stamp: tuple[int, ...]
    changed_at: int
    """Number of publications that the server had sent before it got this text."""
    held: bool = False
    """True while an earlier text is shown to the server on purpose."""


def read_document(workspace: Workspace, path: str) -> tuple[str, tuple[int, ...]]:
    """Return the text of a file without byte order mark, and its stamp. Raise ToolError if it is closed."""
    if STRENGTH[workspace.protection(path)] > STRENGTH["guarded"]:
        raise ToolError(f"{path}: is a protected place, which language servers do not see.")
    status = workspace.status(path)
    return workspace.read_text(path).removeprefix(MARK), status.stamp if status else ()


def uri_of(root: Path, path: str) -> str:
    """Return the address of a file in the workspace."""
    return (root / path).as_uri()


def path_of(root: Path, uri: str) -> str | None:
    """Return the path of an address, relative to the workspace; None if it lies outside."""
    place = outside_path(uri)
    if not place:
        return None
    return _below(root, place) or _below(root, os.path.realpath(place))


def _below(root: Path, place: str) -> str | None:
    within = place.startswith(f"{root}/") and ".." not in place.split("/")
    return place[len(str(root)) + 1 :] if within else None


def outside_path(uri: str) -> str:
    """Return the absolute path of an address, empty if it is no file."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""


class FolderState:
    """Sizes and times of all files, to find out what changed. Blocking."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known = self._look()

    def changes(self) -> dict[str, int]:
        """Return the files that changed since the last call, with the kind of change."""
        before, self._known = self._known, self._look()
        gone = dict.fromkeys(before.keys() - self._known.keys(), DELETED)
        new = dict.fromkeys(self._known.keys() - before.keys(), CREATED)
        both = before.keys() & self._known.keys()
        changed = dict.fromkeys((path for path in both if before[path] != self._known[path]), CHANGED)
        return {**gone, **new, **changed}

    def files(self, suffixes: Iterable[str]) -> list[str]:
        """Return the files with these suffixes, as they were at the last call."""
        ends = tuple(suffixes)
        return [path for path in self._known if path.lower().endswith(ends)]

    def _look(self) -> dict[str, tuple[int, int]]:
        listing = self._workspace.list(".", depth=_DEEPEST, limit=_MOST, skip=SKIPPED)
        return {one.path: (one.size, one.changed_ns) for one in listing.entries if one.kind == "file"}
