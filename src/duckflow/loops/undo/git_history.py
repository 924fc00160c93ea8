"""Undo in git repositories: never loses what was built on the undone commits (G8)."""

from collections.abc import Collection, Mapping
from typing import NamedTuple

from duckflow.domain.files.changes import FileChange
from duckflow.domain.patterns import lazy_regex

_PART = lazy_regex(
    r"(?P<place>(?:.*/)?\.git(?:/modules/.+?)?)/(?:(?P<objects>objects(?:/.*)?)"
    r"|(?:worktrees/[^/]+/)?(?:(?P<history>HEAD|index|packed-refs|(?:refs|logs)/.*)|[A-Z_]+))"
)


class KeptByUndo(NamedTuple):
    """Paths in git directories that an undo must not change."""

    objects: frozenset[str] = frozenset()
    """New objects. Other commits may need them, and git itself removes them when nothing does."""
    history: Mapping[str, str] = {}
    """Refs, indexes, logs and messages that have moved on, each with its git directory."""


def kept_in_git(changes: Collection[FileChange], moved: Collection[str]) -> KeptByUndo:
    """Return what to keep of these changes if other programs have changed the paths in `moved` since.

    The history of a repository goes back as a whole or not at all. A repository that the changes created
    is removed with its objects, unless someone has used it.
    """
    parts = {one.path: part for one in changes if (part := _PART.fullmatch(one.path))}
    used = {parts[path]["place"] for path in moved if path in parts and parts[path]["history"]}
    created = {one.path: parts[one.path] for one in changes if one.before is None and one.path in parts}
    new = {part["place"] for part in created.values() if part["history"] == "HEAD"}
    objects = (path for path, part in created.items() if part["objects"] and part["place"] not in new - used)
    history: dict[str, str] = {}
    for path, part in parts.items():
        if part["place"] in used and not part["objects"]:
            history[path] = part["place"]
    for place in new & used:
        history |= {one.path: place for one in changes if f"{one.path}/".startswith(f"{place}/")}
    return KeptByUndo(frozenset(objects), history)
