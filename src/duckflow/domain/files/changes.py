"""Changes to files, in the form that undo and recovery after a crash need (G8, C5)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import Frozen, replace

MOST_CHANGE_SETS = 300
"""Number of latest actions whose file changes the state keeps."""

ToolEffect = Literal["read", "write", "delete", "execute", "consent", "foreign", "fetch"]
"""Kind of effect an operation has. "consent" acts with the user's authority, so only the user can approve it;
"foreign" runs in another program, which Duckflow cannot observe; "fetch" reads from the network."""


FOLDER = "folder"
LINK = "link:"
"""Prefix of the SHA-256 of a link's target."""


class FileChange(Frozen):
    """State of a path before and after a change: content and permission bits, None if it does not exist.

    Content is given as the SHA-256 of a file, as `link:` with the SHA-256 of a link's target, or as `folder`.
    """

    path: str
    before: str | None
    after: str | None
    mode_before: int | None = None
    mode_after: int | None = None
    folders: tuple[str, ...] = ()
    """Folders that were created for the file, outermost first."""
    ignored: bool = False
    """True if a command changed a file that git ignores: it can be undone, but is not listed as work."""
    entries: str | None = None
    """For git's index: SHA-256 of its entries after the change, because git rewrites the file."""


def change_of(path: str, before: tuple[str, int] | None, after: tuple[str, int] | None) -> FileChange:
    """Return the change between two states of a path, each given as content and mode, or None if absent."""
    word, mode = before or (None, None)
    word_after, mode_after = after or (None, None)
    return FileChange(path=path, before=word, after=word_after, mode_before=mode, mode_after=mode_after)


class ChangeSet(Frozen):
    """File changes of one action or undo. Empty for a command of which the changes are unknown."""

    action_id: str
    request_id: str
    operation: str
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    exact: bool = False
    """True if `changes` is everything that the command did."""
    takes_back: tuple[str, ...] = ()
    """If this is an undo: ids of the actions that it undid."""
    undone: bool = False
    task_id: str | None = None
    """Background task that made the changes."""
    stops: int = 0
    """Number of times that the user had stopped the request before."""

    @property
    def by_undo(self) -> bool:
        """True if an undo or redo made these changes."""
        return self.operation in ("undo", "redo")


LeftReason = Literal["changed", "not_kept", "failed", "built_on"]


class LeftFile(Frozen):
    """File that an undo did not restore: it has changed since, its old content is gone, or writing failed.

    `built_on`: the history of this git directory has moved on.
    """

    path: str
    reason: LeftReason
    detail: str = ""


class UndoReport(Frozen):
    """Result of an undo. `commands` are those in the undone actions; some of their effects may remain."""

    kind: Literal["undo", "redo"] = "undo"
    actions: int = 0
    restored: tuple[FileChange, ...] = ()
    """File changes made by the undo."""
    left: tuple[LeftFile, ...] = ()
    commands: tuple[str, ...] = ()
    remaining: int = 0
    """Earlier actions whose changes can still be undone."""
    after_stop: int = 0
    """If the user had stopped the undone request in between: number of actions after the last stop."""


def net_changes(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Combine the changes of each file into one, and drop those that cancel each other out."""
    merged: dict[str, FileChange] = {}
    for change in changes:
        first = merged.get(change.path)
        merged[change.path] = change if first is None else join(first, change)
    return tuple(
        one for one in merged.values() if (one.before, one.mode_before) != (one.after, one.mode_after)
    )


def changed_files(sets: Iterable[ChangeSet], request_id: str) -> tuple[str, ...]:
    """Return changed files: edits of this request, then changes by its commands, then earlier requests."""
    ranked: list[tuple[int, ChangeSet]] = []
    for one in sets:
        if not one.undone and not one.by_undo:
            earlier = 2 if one.request_id != request_id else 0
            ranked.append((earlier + bool(one.command), one))
    ranked.reverse()
    ranked.sort(key=lambda pair: pair[0])
    paths = (change.path for _, one in ranked for change in reversed(one.changes) if _is_work(change))
    return tuple(dict.fromkeys(paths))


def _is_work(change: FileChange) -> bool:
    of_git = ".git" in change.path.split("/")
    return not (change.ignored or of_git or is_cache(change.path) or FOLDER in (change.before, change.after))


def join(first: FileChange, last: FileChange) -> FileChange:
    """Combine two successive changes of a path into one."""
    return replace(
        first,
        after=last.after,
        mode_after=last.mode_after,
        entries=last.entries,
        folders=tuple(dict.fromkeys((*first.folders, *last.folders))),
    )
