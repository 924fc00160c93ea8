"""Changes to files, as undo needs them and as recovery compares them with the disk (G8, C5)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import Frozen, replace

MOST_CHANGE_SETS = 300
"""Number of recent actions whose file changes the state keeps."""

ToolEffect = Literal["read", "write", "delete", "execute", "consent", "foreign", "fetch"]
"""Kind of effect an operation has. "consent" acts with the user's authority, so only the user can approve it;
"foreign" runs in another program, which Duckflow cannot observe; "fetch" reads from the network."""


FOLDER = "folder"
LINK = "link:"
"""Prefix for the digest of a link's target."""


class FileChange(Frozen):
    """A path before and after a change, with its permission bits; None if it does not exist.

    Identities are the SHA-256 of a file's content, `link:` with the SHA-256 of a link's target, or `folder`.
    """

    path: str
    before: str | None
    after: str | None
    mode_before: int | None = None
    mode_after: int | None = None
    folders: tuple[str, ...] = ()
    """Folders created for it, outermost first."""
    ignored: bool = False
    """True if a command changed a file that git ignores: it can be undone, but is not listed as work."""


def change_of(path: str, before: tuple[str, int] | None, after: tuple[str, int] | None) -> FileChange:
    """Return a change between two states of a path, each its identity and permission bits, None if absent."""
    word, mode = before or (None, None)
    word_after, mode_after = after or (None, None)
    return FileChange(path=path, before=word, after=word_after, mode_before=mode, mode_after=mode_after)


class ChangeSet(Frozen):
    """File changes of one action or one undo. Empty for a command whose changes were not observed."""

    action_id: str
    request_id: str
    operation: str
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    exact: bool = False
    """True if `changes` is everything that the command did."""
    takes_back: tuple[str, ...] = ()
    """For an undo: ids of the actions it undid."""
    undone: bool = False

    @property
    def by_undo(self) -> bool:
        """True if an undo or redo made these changes."""
        return self.operation in ("undo", "redo")


LeftReason = Literal["changed", "not_kept", "failed"]


class LeftFile(Frozen):
    """A file that an undo left alone: it was changed since, its old content is gone, or writing failed."""

    path: str
    reason: LeftReason
    detail: str = ""


class UndoReport(Frozen):
    """Result of an undo. `commands` ran in the undone actions; their other effects remain."""

    kind: Literal["undo", "redo"] = "undo"
    actions: int = 0
    restored: tuple[FileChange, ...] = ()
    """File changes made by the undo."""
    left: tuple[LeftFile, ...] = ()
    commands: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    """Files changed by a command that were restored too."""


def net_changes(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Merge the changes of each file, from its first state to its last, and drop those that cancel out."""
    merged: dict[str, FileChange] = {}
    for change in changes:
        first = merged.get(change.path)
        merged[change.path] = change if first is None else join(first, change)
    return tuple(
        one for one in merged.values() if (one.before, one.mode_before) != (one.after, one.mode_after)
    )


def changed_files(sets: Iterable[ChangeSet], request_id: str) -> tuple[str, ...]:
    """Return the changed files: edits of this request, then its commands, then earlier requests."""
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
    """Merge two successive changes of a path."""
    return replace(
        first,
        after=last.after,
        mode_after=last.mode_after,
        folders=tuple(dict.fromkeys((*first.folders, *last.folders))),
    )
