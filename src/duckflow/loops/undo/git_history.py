"""Undo in git repositories: never loses what was built on the undone commits (G8).

A repository is recognised as git itself does it, whatever the name of its folder: bare ones, and those that a
`.git` file names, count too. Its history goes back as a whole or not at all.
"""

from collections.abc import Collection, Iterator, Mapping
from hashlib import sha256
from typing import Literal, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FOLDER, FileChange
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.files.path_states import PathStates

Part = Literal["objects", "history", "note", "other"]
"""Part of a git directory. A `note` such as ORIG_HEAD belongs to the history, but nothing is built on it."""

_HISTORY = lazy_regex(
    r"packed-refs|(?:worktrees/[^/]+/)?(?:HEAD|index|sharedindex\.\w+|gitdir|commondir|locked"
    r"|(?:refs|logs|reftable|rebase-merge|rebase-apply|sequencer)(?:/.*)?)|worktrees(?:/[^/]+)?"
)
_NOTE = lazy_regex(r"(?:worktrees/[^/]+/)?[A-Z_]+")
_OBJECTS = lazy_regex(r"shallow|objects(?:/.*)?")
_BORROWED = ("shallow", "objects/info/alternates")
"""Files without which new objects would refer to missing ones."""

_OF_A_REPOSITORY = ("HEAD", "objects", "refs")
_POINTER = "gitdir: "
_CHECKED_OUT = "ref: "


class KeptByUndo(NamedTuple):
    """Paths in git directories that an undo must not change."""

    objects: frozenset[str] = frozenset()
    """New objects. Other commits may need them, and git itself removes them when nothing does."""
    history: Mapping[str, str] = {}
    """Refs, indexes, logs and messages that have moved on, each with its git directory."""


class _GitPath(NamedTuple):
    """A changed path in a git directory: that directory, and the path's part of it."""

    place: str
    inside: str
    part: Part


def kept_in_git(changes: Collection[FileChange], moved: Collection[str], paths: PathStates) -> KeptByUndo:
    """Return what to keep of these changes if other programs have changed the paths in `moved` since.

    A repository that the changes created is removed with its objects, unless someone has used it.
    """
    by_path = {one.path: one for one in changes}
    found = _Repositories(by_path, paths).found
    new = {one.place for path, one in found.items() if one.inside == "HEAD" and not by_path[path].before}
    used = {found[path].place for path in moved if path in found and found[path].part == "history"}
    used |= {found[path].place for path in moved if path in found and found[path].place in new}
    used |= {place for place in new - used if _has_more(place, by_path, paths)}
    used |= {
        one.place
        for path, one in found.items()
        if _is_checked_out_elsewhere(one, by_path, paths) and not _names_the_same(by_path[path], one, paths)
    }
    objects = {
        path
        for path, one in found.items()
        if one.part == "objects" and one.place not in new - used and _is_new(by_path[path], one)
    }
    history = {
        path: one.place
        for path, one in found.items()
        if one.place in used and (one.part in ("history", "note") or one.place in new)
    }
    for place in used:
        history |= dict.fromkeys(_pointers(by_path, place, paths), place)
        history |= {place: place} if place in new and place in by_path else {}
    return KeptByUndo(frozenset(objects), history)


class _Repositories:
    """Finds the git directories around changed paths: those that exist, and those that the changes made."""

    def __init__(self, changes: Mapping[str, FileChange], paths: PathStates) -> None:
        self._changes = changes
        self._paths = paths
        self._known: dict[str, bool] = {}
        located = ((path, self._around(path)) for path in changes)
        self.found = {path: one for path, one in located if one is not None}
        """The changed paths that lie in git directories."""

    def _around(self, path: str) -> _GitPath | None:
        above = path.rpartition("/")[0]
        while not self._is_repository(above):
            if not above:
                return None
            above = above.rpartition("/")[0]
        inside = path[len(above) + 1 :] if above else path
        return _GitPath(above, inside, _part_of(inside))

    def _is_repository(self, folder: str) -> bool:
        if folder not in self._known:
            named = (f"{folder}/{name}" if folder else name for name in _OF_A_REPOSITORY)
            self._known[folder] = all(one in self._changes or self._paths.exists(one) for one in named)
        return self._known[folder]


def _part_of(inside: str) -> Part:
    if _OBJECTS.fullmatch(inside):
        return "objects"
    if _HISTORY.fullmatch(inside):
        return "history"
    return "note" if _NOTE.fullmatch(inside) else "other"


def _is_new(change: FileChange, found: _GitPath) -> bool:
    return change.before is None or (found.inside in _BORROWED and change.after is not None)


def _has_more(place: str, changes: Collection[str], paths: PathStates) -> bool:
    """Return whether a new repository contains anything that the changes did not create."""
    waiting = [place]
    while waiting:
        above = waiting.pop()
        for name, is_folder in paths.entries(above).items():
            path = f"{above}/{name}" if above else name
            if path not in changes:
                return True
            waiting += [path] if is_folder else []
    return False


def _is_checked_out_elsewhere(ref: _GitPath, changes: Collection[str], paths: PathStates) -> bool:
    """Return whether a worktree shows a branch that is only now to go back: it would lose its commit."""
    if not ref.inside.startswith("refs/heads/"):
        return False
    start = f"{ref.place}/" if ref.place else ""
    others = (f"{start}worktrees/{name}/" for name in paths.entries(f"{start}worktrees"))
    for one in (start, *others):
        own = any(f"{one}{name}" in changes for name in ("index", "logs/HEAD", "HEAD"))
        if not own and paths.exists(f"{one}index"):
            head = _content(f"{one}HEAD", paths)
            if head.removeprefix(_CHECKED_OUT).strip() == ref.inside:
                return True
    return False


def _names_the_same(change: FileChange, ref: _GitPath, paths: PathStates) -> bool:
    """Return whether a ref was only packed, so that undo lets it name the same commit as now."""
    packed = _content(f"{ref.place}/packed-refs" if ref.place else "packed-refs", paths)
    lines = (line.split() for line in packed.splitlines() if line[:1] not in ("#", "^"))
    commit = next((line[0] for line in lines if line[1:] == [ref.inside]), "")
    return change.after is None and sha256(f"{commit}\n".encode()).hexdigest() == change.before


def _pointers(changes: Mapping[str, FileChange], place: str, paths: PathStates) -> Iterator[str]:
    """Yield the new `.git` files that lead to a repository: submodules and worktrees in the folder."""
    for path, change in changes.items():
        if change.before is None and change.after != FOLDER and path.rpartition("/")[2] == ".git":
            said = _content(path, paths).strip()
            if said.startswith(_POINTER) and (said.endswith(f"/{place}") or f"/{place}/worktrees/" in said):
                yield path


def _content(path: str, paths: PathStates) -> str:
    """Return the text of a small file, or an empty text if the file is missing."""
    try:
        now = paths.now(path)
    except ToolError:
        return ""
    return now.data.decode("utf-8", "replace") if now is not None and now.kind == "file" else ""
