"""Reader of copies: finds the effects of a command in the upper folders of its copy (G9).

In an upper folder, a character device 0/0 stands for a removed file, a folder that was removed and created
again is marked opaque, and everything else was created or changed. The contents may be meant to deceive: no
link is followed, only regular files are opened, and paths too deep to read are reported as dropped.
"""

import hashlib
import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from duckflow.domain.files.effects import DroppedEffect, DropReason, Effect, FileType
from duckflow.safety.descriptors import READ, closing_fd, read_regular
from duckflow.safety.files.git_directory import INSIDE
from duckflow.safety.sandbox.view.confinement import CopyMount

OVERLAY_ATTRIBUTES = "user.overlay."
_OPAQUE = f"{OVERLAY_ATTRIBUTES}opaque"

LONGEST_PATH = 3_500
DEEPEST = 200
"""Deepest path below the workspace, in folders. Deeper or longer paths are dropped and reported."""

_BLOCK = 1 << 20
_SET_ID = stat.S_ISUID | stat.S_ISGID
_TYPES: dict[int, FileType] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_DROPPED: dict[int, DropReason] = {
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


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
        self._upper = self._lower = self._prefix = ""
        self._opened: dict[str, int] = {}
        self.found: list[Effect] = []
        self.dropped: list[DroppedEffect] = []
        self.conflicts: list[str] = []
        """Paths that another process changed since the command began."""
        self.touched: list[str] = []
        """Files whose content is the same and whose timestamp is new."""

    def read(self) -> None:
        """Find all effects."""
        try:
            for layer, prefix in zip(self._layers, ("", INSIDE), strict=False):
                self._upper, self._lower, self._prefix = layer.upper, layer.lower, prefix
                if not prefix:
                    self._note(".", "folder", _status(layer.lower), os.lstat(layer.upper))
                self._compare_folders()
        finally:
            for path, mode in self._opened.items():
                os.chmod(path, mode)

    def _compare_folders(self) -> None:
        waiting = [""]
        while waiting:
            folder = waiting.pop()
            names = self._names_in_copy(f"{self._upper}/{folder}")
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if _is_unspeakable(path):
                    self._drop(path, "unreadable")
                elif self._compare(path):
                    waiting.append(path)
            before = _status(f"{self._lower}/{folder}")
            replaced = _attribute(f"{self._upper}/{folder}", _OPAQUE) == b"y"
            if replaced and before is not None and stat.S_ISDIR(before.st_mode):
                for name in set(_names(f"{self._lower}/{folder}")).difference(names):
                    self._delete(f"{folder}/{name}" if folder else name)

    def _names_in_copy(self, folder: str) -> list[str]:
        """List a folder of the copy. If the command made it unreadable, make it readable while reading."""
        try:
            return os.listdir(folder)
        except PermissionError:
            self._opened[folder] = stat.S_IMODE(os.lstat(folder).st_mode)
            os.chmod(folder, 0o700)
            return os.listdir(folder)

    def _compare(self, path: str) -> bool:
        """Record the effect on one path. Return True for a folder whose contents must be compared."""
        now = os.lstat(f"{self._upper}/{path}")
        before = _status(f"{self._lower}/{path}")
        kind = stat.S_IFMT(now.st_mode)
        if kind == stat.S_IFCHR and now.st_rdev == 0:
            self._delete(path)
            return False
        if path == ".git" and len(self._layers) > 1 and not self._prefix and kind == stat.S_IFDIR:
            self._drop(path, "unreadable")  # would replace the file that points to the real repository
            return False
        if kind in _DROPPED:
            self._drop(path, _DROPPED[kind])
            if before is not None:
                self._delete(path)
            return False
        if before is not None and stat.S_IFMT(before.st_mode) != kind:
            self._delete(path)
            before = None
        self._note_conflict(path, before, now)
        self._note(path, _TYPES[kind], before, now)
        return kind == stat.S_IFDIR

    def _note(self, path: str, kind: FileType, before: os.stat_result | None, now: os.stat_result) -> None:
        """Record how a path changed. Both states have the same type; `before` is None for a new path."""
        after, mode, mode_before = _digest(f"{self._upper}/{path}", kind), None, None
        was = None if before is None else _digest(f"{self._lower}/{path}", kind)
        if kind == "file" and (after is None or (before is not None and was is None)):
            self._drop(path, "unreadable")
            return
        if kind != "link":
            mode = self._safe_mode(path, before, now)
            mode_before = None if before is None else stat.S_IMODE(before.st_mode)
        if before is not None and (after, mode) == (was, mode_before):
            if kind == "file" and before.st_mtime_ns != now.st_mtime_ns:
                self.touched.append(f"{self._prefix}{path}")
            return
        target = os.readlink(f"{self._upper}/{path}") if kind == "link" else ""
        if target and leads_out(path, target, self._lower, self._outside):
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
            )
        )

    def _safe_mode(self, path: str, before: os.stat_result | None, now: os.stat_result) -> int:
        """Return the permission bits. New set-id bits are removed, unless they come from the folder above."""
        mode = stat.S_IMODE(now.st_mode)
        given = 0 if before is None else before.st_mode & _SET_ID
        if stat.S_ISDIR(now.st_mode):
            above = _status(f"{self._upper}/{os.path.dirname(path)}")
            given |= stat.S_ISGID & (above.st_mode if above else 0)
        if mode & _SET_ID & ~given:
            self._drop(path, "set_id")
        return mode & ~(_SET_ID & ~given)

    def _delete(self, path: str) -> None:
        waiting = [path]
        while waiting:
            one = waiting.pop()
            before = _status(f"{self._lower}/{one}")
            if before is None:
                continue
            self._note_conflict(one, before, None)
            kind = _TYPES.get(stat.S_IFMT(before.st_mode))
            if kind is None or _is_unspeakable(one):
                self._drop(one, "unreadable")
                continue
            self.found.append(
                Effect(
                    path=f"{self._prefix}{one}",
                    kind="deleted",
                    type=kind,
                    before=_digest(f"{self._lower}/{one}", kind),
                    mode_before=stat.S_IMODE(before.st_mode),
                )
            )
            if kind == "folder":
                waiting += [f"{one}/{name}" for name in _names(f"{self._lower}/{one}")]

    def _note_conflict(self, path: str, before: os.stat_result | None, now: os.stat_result | None) -> None:
        """Record a path that another process changed since the command began. Folders only count when new."""
        named = f"{self._prefix}{path}"
        if before is not None and not stat.S_ISDIR(before.st_mode):
            if before.st_ctime_ns > self._started_ns and before.st_ctime_ns != self._own.get(named):
                self.conflicts.append(named)
        elif before is None and now is not None and stat.S_ISREG(now.st_mode):
            above = _status(f"{self._lower}/{os.path.dirname(path)}")
            meanwhile = above is not None and above.st_ctime_ns > self._started_ns
            if meanwhile and _attribute(f"{self._upper}/{path}", f"{OVERLAY_ATTRIBUTES}origin") is not None:
                self.conflicts.append(named)

    def _drop(self, path: str, reason: DropReason) -> None:
        shown = os.fsencode(f"{self._prefix}{path}").decode("utf-8", "backslashreplace")
        self.dropped.append(DroppedEffect(path=shown, reason=reason))


def read_content(path: str, most: int) -> bytes | None:
    """Return a file's content or a link's target; None if it is neither or has more than `most` bytes."""
    with suppress(OSError):
        return os.fsencode(os.readlink(path))
    content = read_regular(path, most + 1)
    return content if content is None or len(content) <= most else None


def file_digest(path: str) -> str | None:
    """Return the SHA-256 of a regular file, even one without read permission. None if it can't be read."""
    with suppress(OSError), closing_fd(_open_readable(path)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            digest = hashlib.sha256()
            while block := os.read(opened, _BLOCK):
                digest.update(block)
            return digest.hexdigest()
    return None


def text_digest(text: str) -> str:
    """Return the SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def leads_out(path: str, target: str, root: str, outside: Iterable[str]) -> bool:
    """Return whether a link leads out of the workspace, except to folders that are always read-only."""
    absolute = os.path.normpath(os.path.join(root, os.path.dirname(path), target))
    return not any(absolute == place or absolute.startswith(f"{place}/") for place in (root, *outside))


def _digest(path: str, kind: FileType) -> str | None:
    if kind == "folder":
        return None
    return text_digest(os.readlink(path)) if kind == "link" else file_digest(path)


def _open_readable(path: str) -> int:
    """Open a file. If its owner may not read it, make it readable while opening."""
    try:
        return os.open(path, READ)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode | stat.S_IRUSR)
        try:
            return os.open(path, READ)
        finally:
            os.chmod(path, mode)


def _is_unspeakable(path: str) -> bool:
    """Return whether a path is too deep or is not text, so that the user can't be asked about it."""
    is_text = path.isascii() or path.encode("utf-8", "replace").decode() == path
    return not is_text or path.count("/") > DEEPEST or len(os.fsencode(path)) > LONGEST_PATH


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _status(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _attribute(path: str, name: str) -> bytes | None:
    with suppress(OSError):
        return os.getxattr(path, name, follow_symlinks=False)
    return None
