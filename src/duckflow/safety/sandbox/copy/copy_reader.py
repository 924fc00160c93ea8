"""Reader of copies: finds the effects of a command in the upper folders of its copy (G9).

In an upper folder, a character device 0/0 stands for a removed file, a folder that was removed and created
again is marked opaque, and everything else was created or changed. The contents may be meant to deceive: no
link is followed, only regular files are opened, and paths too deep to read are reported as dropped.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from itertools import takewhile
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import LARGEST_KEPT, DroppedEffect, DropReason, Effect, FileType
from duckflow.safety.descriptors import closing_fd, data_ranges, open_readable
from duckflow.safety.files.confined_open import FOLDER
from duckflow.safety.files.git_directory import INSIDE
from duckflow.safety.sandbox.copy.layers import (
    ClosedFolder,
    Layer,
    attribute,
    file_digest,
    open_to_list,
    text_digest,
)
from duckflow.safety.sandbox.view.confinement import CopyMount

OVERLAY_ATTRIBUTES = "user.overlay."
_OPAQUE = f"{OVERLAY_ATTRIBUTES}opaque"

LONGEST_PATH = 3_500
DEEPEST = 200
"""Deepest path below the workspace, in folders. Deeper or longer paths are dropped and reported."""

MOST_HOLES = 2_000_000_000
"""Bytes in holes of files small enough to keep. They are hashed like data, but cost a command nothing."""

_SET_ID = stat.S_ISUID | stat.S_ISGID
_TYPES: dict[int, FileType] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_DROPPED: dict[int, DropReason] = {
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


class TooManyHoles(ToolError):
    """Raised if reading the effects would take minutes because of holes, which a command makes in no time."""


class _Folder(NamedTuple):
    """Folder that is being compared: its path, and the open folders of the copy and of the workspace."""

    path: str
    upper: int
    lower: int | None

    def below(self, name: str) -> str:
        return f"{self.path}/{name}" if self.path else name


class CopyReader:
    """Reads one copy once. `own` has the times at which Duckflow itself changed files of the folder."""

    def __init__(
        self,
        layers: tuple[CopyMount, ...],
        started_ns: int,
        readable_outside: Iterable[str],
        own: Mapping[str, int],
    ) -> None:
        self._layers = layers
        self._started_ns = started_ns
        self._own = own
        self._outside = tuple(readable_outside)
        self._prefix = ""
        self._holes = 0
        self._replaced: set[str] = set()
        """Folders created in place of removed ones, and all below them: the kernel marks only the topmost."""
        self.found: list[Effect] = []
        self.dropped: list[DroppedEffect] = []
        self.conflicts: list[str] = []
        """Paths that another process changed since the command began."""
        self.touched: list[str] = []
        """Files whose content is the same and whose timestamp is new."""

    def read(self) -> None:
        """Find all effects."""
        for mounted, prefix in zip(self._layers, ("", INSIDE), strict=False):
            self._prefix = prefix
            with closing(Layer(mounted.upper)) as upper, closing(Layer(mounted.lower)) as lower:
                self._compare_layers(upper, lower)

    def _compare_layers(self, upper: Layer, lower: Layer) -> None:
        waiting: list[str | ClosedFolder] = [""]
        self._replaced.clear()
        try:
            while waiting:
                if isinstance(one := waiting.pop(), ClosedFolder):
                    one.restore()
                    continue
                try:
                    opened, closed = open_to_list(upper, one)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # removed by a process that is still running; its effect is read the next time
                waiting += [closed] if closed is not None else []
                waiting += self._compare_folder(one, opened, lower)
        finally:
            for one in waiting:
                if isinstance(one, ClosedFolder):
                    one.restore()

    def _compare_folder(self, path: str, upper: int, lower: Layer) -> list[str]:
        """Record the effects on the entries of a folder. Return the folders below it, to compare as well."""
        below: list[str] = []
        with ExitStack() as stack:
            stack.enter_context(closing_fd(upper))
            was = _open_folder(lower, path)
            if was is not None:
                stack.enter_context(closing_fd(was))
            folder = _Folder(path, upper, was)
            if not path and not self._prefix and was is not None:
                self._note(folder, ".", "folder", os.fstat(was), os.fstat(upper), ".")
            names = os.listdir(upper)
            for name in names:
                inside = folder.below(name)
                if _is_unspeakable(inside):
                    self._drop(inside, "unreadable")
                elif self._compare(folder, name, lower):
                    below.append(inside)
            if path.rpartition("/")[0] in self._replaced or _is_opaque(upper):
                self._replaced.add(path)
            if was is not None and path in self._replaced:
                for name in set(os.listdir(was)).difference(names):
                    self._delete(folder.below(name), lower)
        return below

    def _compare(self, folder: _Folder, name: str, lower: Layer) -> bool:
        """Record the effect on one path. Return True for a folder whose contents must be compared."""
        path = folder.below(name)
        now, before = _status(folder.upper, name), _status(folder.lower, name)
        if now is None:
            return False  # removed by a process that is still running
        kind = stat.S_IFMT(now.st_mode)
        if kind == stat.S_IFCHR and now.st_rdev == 0:
            self._delete(path, lower)
            return False
        if path == ".git" and len(self._layers) > 1 and not self._prefix and kind == stat.S_IFDIR:
            self._drop(path, "unreadable")  # would replace the file that points to the real repository
            return False
        if kind in _DROPPED:
            self._drop(path, _DROPPED[kind])
            if before is not None:
                self._delete(path, lower)
            return False
        if before is not None and stat.S_IFMT(before.st_mode) != kind:
            self._delete(path, lower)
            before = None
        self._note_conflict(path, before, now, folder, name)
        self._note(folder, name, _TYPES[kind], before, now, path)
        return kind == stat.S_IFDIR

    def _note(
        self,
        folder: _Folder,
        name: str,
        kind: FileType,
        before: os.stat_result | None,
        now: os.stat_result,
        path: str,
    ) -> None:
        """Record how a path changed. Both states have the same type; `before` is None for a new path."""
        if kind == "file":
            self._count_holes(folder.upper, name, now)
        after, target = _identify(folder.upper, name, kind)
        was = None if before is None else _identify(folder.lower, name, kind)[0]
        mode = mode_before = None
        if kind != "folder" and (after is None or (before is not None and was is None)):
            self._drop(path, "unreadable")
            return
        if kind != "link":
            mode = self._safe_mode(path, before, now, folder)
            mode_before = None if before is None else stat.S_IMODE(before.st_mode)
        if before is not None and (after, mode) == (was, mode_before):
            if kind == "file" and before.st_mtime_ns != now.st_mtime_ns:
                self.touched.append(f"{self._prefix}{path}")
            return
        if target and leads_out(path, target, self._layers[1 if self._prefix else 0].lower, self._outside):
            self._drop(path, "link_out")
            return
        self.found.append(
            Effect(
                path=f"{self._prefix}{path}",
                kind="created" if before is None else "changed" if after != was else "mode",
                type=kind,
                before=was,
                after=after,
                mode_before=mode_before,
                mode_after=mode,
                link_target=target,
                size=now.st_size if kind != "folder" else 0,
                size_before=before.st_size if before is not None and kind != "folder" else 0,
            )
        )

    def _count_holes(self, folder: int, name: str, status: os.stat_result) -> None:
        if status.st_size > LARGEST_KEPT or status.st_blocks * 512 >= status.st_size:
            return
        with suppress(OSError), closing_fd(open_readable(folder, name)) as opened:
            data = sum(end - start for start, end in data_ranges(opened, status.st_size))
            self._holes += status.st_size - data
        if self._holes > MOST_HOLES:
            raise TooManyHoles("The command made too many files of holes; nothing that it did was kept.")

    def _safe_mode(
        self, path: str, before: os.stat_result | None, now: os.stat_result, folder: _Folder
    ) -> int:
        """Return the permission bits. New set-id bits are removed, unless they come from the folder above."""
        mode = stat.S_IMODE(now.st_mode)
        given = 0 if before is None else before.st_mode & _SET_ID
        if stat.S_ISDIR(now.st_mode):
            given |= stat.S_ISGID & os.fstat(folder.upper).st_mode
        if mode & _SET_ID & ~given:
            self._drop(path, "set_id")
        return mode & ~(_SET_ID & ~given)

    def _delete(self, path: str, lower: Layer) -> None:
        waiting = [path]
        while waiting:
            one = waiting.pop()
            above, _, name = one.rpartition("/")
            with suppress(OSError), closing_fd(lower.open(above, FOLDER)) as folder:
                if self._delete_one(one, folder, name):
                    with closing_fd(os.open(name, FOLDER | os.O_NOFOLLOW, dir_fd=folder)) as opened:
                        waiting += [f"{one}/{inside}" for inside in os.listdir(opened)]

    def _delete_one(self, path: str, folder: int, name: str) -> bool:
        """Record that a path was removed. Return True for a folder."""
        before = _status(folder, name)
        if before is None:
            return False
        self._note_conflict(path, before, None)
        kind = _TYPES.get(stat.S_IFMT(before.st_mode))
        if kind is None or _is_unspeakable(path):
            self._drop(path, "unreadable")
            return False
        self.found.append(
            Effect(
                path=f"{self._prefix}{path}",
                kind="deleted",
                type=kind,
                before=_identify(folder, name, kind)[0],
                mode_before=stat.S_IMODE(before.st_mode),
                size_before=before.st_size if kind != "folder" else 0,
            )
        )
        return kind == "folder"

    def _note_conflict(
        self,
        path: str,
        before: os.stat_result | None,
        now: os.stat_result | None,
        folder: _Folder | None = None,
        name: str = "",
    ) -> None:
        """Record a path that another process changed since the command began. Folders only count when new."""
        named = f"{self._prefix}{path}"
        if before is not None and not stat.S_ISDIR(before.st_mode):
            if before.st_ctime_ns > self._started_ns and before.st_ctime_ns != self._own.get(named):
                self.conflicts.append(named)
        elif before is None and now is not None and folder is not None and stat.S_ISREG(now.st_mode):
            meanwhile = folder.lower is not None and os.fstat(folder.lower).st_ctime_ns > self._started_ns
            if meanwhile and attribute(folder.upper, name, f"{OVERLAY_ATTRIBUTES}origin") is not None:
                self.conflicts.append(named)

    def _drop(self, path: str, reason: DropReason) -> None:
        shown = os.fsencode(f"{self._prefix}{path}").decode("utf-8", "backslashreplace")
        self.dropped.append(DroppedEffect(path=shown, reason=reason))


def leads_out(path: str, target: str, root: str, outside: Iterable[str]) -> bool:
    """Return whether a link leads out of the workspace, except to folders that are always read-only."""
    names = [name for name in target.split("/") if name not in ("", ".")]
    if ".." in names[sum(1 for _ in takewhile(lambda name: name == "..", names)) :]:
        return True  # a link among these names would make the way back lead elsewhere
    absolute = os.path.normpath(os.path.join(root, os.path.dirname(path), target))
    return not any(absolute == place or absolute.startswith(f"{place}/") for place in (root, *outside))


def _identify(folder: int | None, name: str, kind: FileType) -> tuple[str | None, str]:
    """Return the digest of a file or link, None if it can't be read, and the target of a link."""
    with suppress(OSError):
        if kind == "link":
            target = os.readlink(name, dir_fd=folder)
            return text_digest(target), target
        if kind == "file" and folder is not None:
            with closing_fd(open_readable(folder, name)) as opened:
                return file_digest(opened), ""
    return None, ""


def _open_folder(layer: Layer, path: str) -> int | None:
    with suppress(OSError):
        return layer.open(path, FOLDER)
    return None


def _is_opaque(folder: int) -> bool:
    with suppress(OSError):
        return os.getxattr(folder, _OPAQUE) == b"y"
    return False


def _is_unspeakable(path: str) -> bool:
    """Return whether a path is too deep or is not text, so that the user can't be asked about it."""
    is_text = path.isascii() or path.encode("utf-8", "replace").decode() == path
    return not is_text or path.count("/") > DEEPEST or len(os.fsencode(path)) > LONGEST_PATH


def _status(folder: int | None, name: str) -> os.stat_result | None:
    if folder is None:
        return None
    with suppress(OSError):
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    return None
