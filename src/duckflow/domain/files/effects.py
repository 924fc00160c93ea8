"""Effects of a command: its changes to the workspace, read from the copy on which it ran (G9)."""

from itertools import accumulate
from typing import Literal

from duckflow.domain.files.caches import TOOL_CACHES
from duckflow.domain.files.changes import FOLDER, LINK, FileChange
from duckflow.domain.frozen import Frozen

EffectKind = Literal["created", "changed", "deleted", "moved", "mode"]
"""`mode`: only the permission bits differ."""

FileType = Literal["file", "folder", "link"]

DropReason = Literal["set_id", "device", "pipe", "socket", "link_out", "unreadable"]
"""Reason why something in the copy is never applied to the workspace."""


LARGEST_KEPT = 64_000_000
"""Size in bytes of the largest file whose old content is kept for undo."""

_MOST_KEPT = 200_000_000
"""Total size in bytes above which the next change could push out what was kept."""


class Effect(Frozen):
    """Change of one path, relative to the workspace. `before` and `after` are SHA-256 hashes."""

    path: str
    kind: EffectKind
    type: FileType = "file"
    before: str | None = None
    after: str | None = None
    mode_before: int | None = None
    mode_after: int | None = None
    size: int = 0
    """Size of the new content in bytes."""
    size_before: int = 0
    moved_from: str = ""
    link_target: str = ""
    ignored: bool = False
    """True if git ignores the file or its name is that of a cache: it is counted instead of listed."""

    def as_change(self) -> FileChange:
        """Return the effect as a FileChange to record. A move must be split into two effects before."""
        return FileChange(
            path=self.path,
            before=None if self.kind == "created" else identity_of(self.type, self.before),
            after=None if self.kind == "deleted" else identity_of(self.type, self.after),
            mode_before=self.mode_before,
            mode_after=self.mode_after,
            ignored=self.ignored,
        )


class BulkEffect(Frozen):
    """Change of a build or ignored folder (node_modules, target, .venv), reported as one entry."""

    path: str
    files: int
    size: int
    deleted: int = 0
    """Number of deleted files."""
    undoable: bool = True
    """False if the folder is too large to keep for undo; the user is informed."""
    ignored: bool = False
    """True if git ignores the folder or its name is that of a cache."""
    lost: tuple[str, ...] = ()
    """Deleted files that git neither ignored nor a tool makes again. They count as deleted work."""
    kept: bool = True
    """False if what it deletes is too large to keep for undo, so that the user is asked."""


class DroppedEffect(Frozen):
    """Something in the copy that is not applied, or only in part (without its set-id bit)."""

    path: str
    reason: DropReason


class Effects(Frozen):
    """All effects of a command. The workspace changes only when they are applied."""

    effects: tuple[Effect, ...] = ()
    bulk: tuple[BulkEffect, ...] = ()
    dropped: tuple[DroppedEffect, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Paths that another process changed in the workspace since the command began."""
    touched: tuple[str, ...] = ()
    """Files with a new timestamp and the same content. Applied without asking: make compares times."""

    @property
    def unkept(self) -> tuple[str, ...]:
        """Files and folders whose old content is too large to keep, so that undo can't restore it."""
        gone = [one for one in self.effects if one.kind in ("deleted", "changed")]
        gone.sort(key=lambda one: one.size_before)
        totals = accumulate(one.size_before for one in gone)
        files = [
            one.path
            for one, total in zip(gone, totals, strict=True)
            if one.size_before > LARGEST_KEPT or total > _MOST_KEPT
        ]
        return (*files, *(f"{bulk.path}/" for bulk in self.bulk if not bulk.kept))

    @property
    def size(self) -> int:
        """Size of all new and changed files in bytes, with their holes."""
        return sum(one.size for one in (*self.effects, *self.bulk))

    @property
    def nothing(self) -> bool:
        """True if applying the effects would not change the workspace."""
        return not self.effects and not self.bulk

    @property
    def caches(self) -> frozenset[BulkEffect]:
        """New and changed caches that tools recreate. A question only counts their files.

        A file in such a folder that is reported separately is none of them: it may run a program.
        """
        new = [one for one in self.bulk if not one.deleted]
        return frozenset(one for one in new if not TOOL_CACHES.isdisjoint(one.path.split("/")))


def identity_of(kind: FileType, digest: str | None) -> str | None:
    """Return the content of a path in the form that `FileChange` uses."""
    if kind == "folder":
        return FOLDER
    return f"{LINK}{digest}" if kind == "link" and digest else digest
