"""What was done to files, as it can be taken back, and compared with the disk after a crash (G8, C5)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import Frozen, replace

MOST_CHANGE_SETS = 300
"""How many actions back the state remembers what they did to files."""

ToolEffect = Literal["read", "write", "delete", "execute", "consent", "foreign", "fetch"]
"""What an operation does; "consent" says yes in the user's name, which only the user can do; "foreign" is
done by somebody else, out of sight; "fetch" reads from the network."""


FOLDER = "folder"
LINK = "link:"
"""In front of the digest of a link's target."""


class FileChange(Frozen):
    """A path before and after, and its permission bits; None for nothing.

    Of a file it is the SHA-256 of its content, of a link `link:` and that of its target, else `folder`.
    """

    path: str
    before: str | None
    after: str | None
    mode_before: int | None = None
    mode_after: int | None = None
    folders: tuple[str, ...] = ()
    """Folders that were made for it, outermost first."""
    ignored: bool = False
    """Whether a command changed it and git ignores it: it can be undone, and is not listed as work."""


def change_of(path: str, before: tuple[str, int] | None, after: tuple[str, int] | None) -> FileChange:
    """A change from what was there to what is there now: each its word and bits, None for nothing."""
    word, mode = before or (None, None)
    word_after, mode_after = after or (None, None)
    return FileChange(path=path, before=word, after=word_after, mode_before=mode, mode_after=mode_after)


class ChangeSet(Frozen):
    """What one action, or one undo, did to files. A command whose changes nobody saw has none."""

    action_id: str
    request_id: str
    operation: str
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    """The command line, if one was run."""
    exact: bool = False
    """Whether `changes` is all that the command did."""
    takes_back: tuple[str, ...] = ()
    """Of an undo: the ids of what it took back."""
    undone: bool = False

    @property
    def by_undo(self) -> bool:
        """Whether an undo made it, and no action."""
        return self.operation in ("undo", "redo")


LeftReason = Literal["changed", "not_kept", "failed"]


class LeftFile(Frozen):
    """A file an undo did not touch: someone changed it since, its old content is gone, or it failed."""

    path: str
    reason: LeftReason
    detail: str = ""


class UndoReport(Frozen):
    """What an undo did. `commands` ran in what was taken back, and what else they did stays as it is."""

    kind: Literal["undo", "redo"] = "undo"
    actions: int = 0
    restored: tuple[FileChange, ...] = ()
    """What the undo itself did to files."""
    left: tuple[LeftFile, ...] = ()
    commands: tuple[str, ...] = ()
    covered: tuple[str, ...] = ()
    """Files a command had changed that went back too."""


def net_changes(changes: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Several changes of a file as one, from its first state to its last; what came to nothing is out."""
    merged: dict[str, FileChange] = {}
    for change in changes:
        first = merged.get(change.path)
        merged[change.path] = change if first is None else join(first, change)
    return tuple(
        one for one in merged.values() if (one.before, one.mode_before) != (one.after, one.mode_after)
    )


def changed_files(sets: Iterable[ChangeSet], request_id: str) -> tuple[str, ...]:
    """The files that are other than before: edits of this request first, then its commands, then the rest.

    Within each of these the newest comes first. Caches, ignored files and git's own are left out.
    """
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
    """Two changes of a path, one after the other, as one."""
    return replace(
        first,
        after=last.after,
        mode_after=last.mode_after,
        folders=tuple(dict.fromkeys((*first.folders, *last.folders))),
    )
