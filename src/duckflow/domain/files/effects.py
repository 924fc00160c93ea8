"""Effects: what a command did to the folder, read from the copy it worked on (SPEC G9)."""

from typing import Literal

from duckflow.domain.files.caches import TOOL_CACHES
from duckflow.domain.frozen import Frozen

EffectKind = Literal["created", "changed", "deleted", "moved", "mode"]
"""`mode`: only the permission bits differ."""

EffectsFate = Literal[
    "It changed", "Not yet real, the user is asked", "Thrown away, the workspace is as it was"
]
"""What became of what a command did, in the words that models are told it."""

FileType = Literal["file", "folder", "link"]

DropReason = Literal["set_id", "device", "pipe", "socket", "link_out", "unreadable"]
"""Why something in the copy is never taken over."""


class Effect(Frozen):
    """One path that differs now, relative to the workspace. Digests are SHA-256, of a link: of its target."""

    path: str
    kind: EffectKind
    type: FileType = "file"
    before: str | None = None
    after: str | None = None
    mode_before: int | None = None
    mode_after: int | None = None
    size: int = 0
    """Bytes of the new content."""
    moved_from: str = ""
    link_target: str = ""
    ignored: bool = False
    """Whether git ignores it, or its name is that of a cache: then it is counted where others are named."""


class BulkEffect(Frozen):
    """A build or ignored folder (node_modules, target, .venv) that changed, told as a whole."""

    path: str
    files: int
    size: int
    deleted: int = 0
    """How many of the files are gone now."""
    undoable: bool = True
    """False if it is too large to be kept for undo, which is said."""
    ignored: bool = False
    """Whether git ignores it, or its name is that of a cache."""
    sources: tuple[str, ...] = ()
    """The files that are work all the same: git tracks a folder that is only named like a build folder."""


class DroppedEffect(Frozen):
    """Something in the copy that is not taken over, or not as it was (a set-id bit is taken off)."""

    path: str
    reason: DropReason


class Effects(Frozen):
    """All that a command did. Nothing of it has happened to the folder until it is taken over."""

    effects: tuple[Effect, ...] = ()
    bulk: tuple[BulkEffect, ...] = ()
    dropped: tuple[DroppedEffect, ...] = ()
    conflicts: tuple[str, ...] = ()
    """Paths that somebody else changed in the folder since the command began."""
    touched: tuple[str, ...] = ()
    """Files with the same content and another time; taken over without a question, for make looks at it."""

    @property
    def nothing(self) -> bool:
        """Whether the folder would be the same afterwards."""
        return not self.effects and not self.bulk

    @property
    def only_caches(self) -> bool:
        """Whether nothing but caches that tools make again by themselves would be different."""
        caches = all(bulk.path.rsplit("/", 1)[-1] in TOOL_CACHES and not bulk.deleted for bulk in self.bulk)
        return caches and not self.effects and not self.conflicts
