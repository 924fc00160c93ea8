"""Read the effects of a command from the upper layer of its copy (G9). The cost depends on the changes only.

In `upper`, a character device 0/0 stands for a removed file, a folder that was removed and created again is
marked opaque, and everything else was created or changed. The contents may be made to deceive: no link is
followed, only regular files are opened, and paths too deep to read are dropped, not skipped.
"""

import os
import stat
from collections.abc import Iterable, Mapping
from contextlib import suppress

from duckflow.domain.files.effects import DroppedEffect, DropReason, Effect, FileType
from duckflow.safety.sandbox.copy.digests import file_digest, text_digest
from duckflow.safety.sandbox.copy.effect_groups import AsksGit, FoundEffects, told

OPAQUE = "user.overlay.opaque"
OVERLAY_ATTRIBUTES = "user.overlay."

LONGEST_PATH = 3_500
DEEPEST = 200
"""Limits in bytes and folders of a path below the workspace. Deeper paths are dropped and reported."""

_SET_ID = stat.S_ISUID | stat.S_ISGID
_TYPES: dict[int, FileType] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder", stat.S_IFLNK: "link"}
_DROPPED: dict[int, DropReason] = {
    stat.S_IFCHR: "device",
    stat.S_IFBLK: "device",
    stat.S_IFIFO: "pipe",
    stat.S_IFSOCK: "socket",
}


class EffectReader:
    """Reads one copy once. `own` has change times of paths that Duckflow itself changed meanwhile.

    `prefix` is put before each path. With `git_outside`, this layer has nothing below `.git`.
    """

    def __init__(
        self,
        upper: str,
        lower: str,
        started_ns: int,
        readable_outside: Iterable[str],
        own: Mapping[str, int],
        prefix: str = "",
        *,
        git_outside: bool = False,
    ) -> None:
        self._upper = upper
        self._lower = lower
        self._started_ns = started_ns
        self._own = own
        self._outside = tuple(readable_outside)
        self._prefix = prefix
        self._git_outside = git_outside
        self._found: list[Effect] = []
        self._dropped: list[DroppedEffect] = []
        self._conflicts: list[str] = []
        self._touched: list[str] = []
        self._opened: dict[str, int] = {}

    def read(self, ignored_by: AsksGit, tracked_in: AsksGit) -> FoundEffects:
        """Read all effects."""
        try:
            if not self._prefix:
                self._note(".", "folder", _status(self._lower), os.lstat(self._upper))
            self._compare_folder("")
        finally:
            for path, mode in self._opened.items():
                os.chmod(path, mode)
        conflicts = dict.fromkeys(self._conflicts)
        dropped, touched = self._dropped, self._touched
        return told(
            self._found, ignored_by, tracked_in, dropped=dropped, conflicts=conflicts, touched=touched
        )

    def _compare_folder(self, start: str) -> None:
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            names = self._names_in_copy(f"{self._upper}/{folder}")
            for name in names:
                path = f"{folder}/{name}" if folder else name
                if _is_unspeakable(path):
                    self._drop(path, "unreadable")
                elif self._compare(path):
                    waiting.append(path)
            if _is_opaque(f"{self._upper}/{folder}"):
                self._note_gone(folder, names)

    def _names_in_copy(self, folder: str) -> list[str]:
        """Return the names in a folder of the copy. Open a folder that the command closed during the read."""
        try:
            return os.listdir(folder)
        except PermissionError:
            self._opened[folder] = stat.S_IMODE(os.lstat(folder).st_mode)
            os.chmod(folder, 0o700)
            return os.listdir(folder)

    def _note_gone(self, folder: str, still: list[str]) -> None:
        """Record entries that are missing from a folder that was removed and created again."""
        if not stat.S_ISDIR(_mode(f"{self._lower}/{folder}")):
            return
        for name in set(_names(f"{self._lower}/{folder}")).difference(still):
            self._delete(f"{folder}/{name}" if folder else name)

    def _compare(self, path: str) -> bool:
        """Record the effect on one path. Return True for a folder whose contents must be compared."""
        now = os.lstat(f"{self._upper}/{path}")
        before = _status(f"{self._lower}/{path}")
        kind = stat.S_IFMT(now.st_mode)
        if is_whiteout(now):
            self._delete(path)
            return False
        if path == ".git" and self._git_outside and kind == stat.S_IFDIR:
            self._drop(path, "unreadable")  # a repository in place of the file that points to the real one
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
        """Record the difference between the states of a path before and after, which are of the same type."""
        was, mode_before = None, None
        after, mode = self._digest(self._upper, path, kind), None
        if before is not None:
            was = self._digest(self._lower, path, kind)
        if kind == "file" and (after is None or (before is not None and was is None)):
            self._drop(path, "unreadable")
            return
        if kind != "link":
            mode = self._safe_mode(path, before, now)
            mode_before = None if before is None else stat.S_IMODE(before.st_mode)
        if before is not None and (after, mode) == (was, mode_before):
            if kind == "file" and before.st_mtime_ns != now.st_mtime_ns:
                self._touched.append(f"{self._prefix}{path}")
            return
        target = os.readlink(f"{self._upper}/{path}") if kind == "link" else ""
        if target and leads_out(path, target, self._lower, self._outside):
            self._drop(path, "link_out")
            return
        self._found.append(
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
        """Return the permission bits, with set-id bits only if they are old or come from the folder above."""
        mode = stat.S_IMODE(now.st_mode)
        given = 0 if before is None else before.st_mode & _SET_ID
        if stat.S_ISDIR(now.st_mode):
            given |= stat.S_ISGID & _mode(f"{self._upper}/{os.path.dirname(path)}")
        if mode & _SET_ID & ~given:
            self._drop(path, "set_id")
        return mode & ~(_SET_ID & ~given)

    def _delete(self, path: str) -> None:
        """Record the removal of a path and all below it."""
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
            self._found.append(
                Effect(
                    path=f"{self._prefix}{one}",
                    kind="deleted",
                    type=kind,
                    before=self._digest(self._lower, one, kind),
                    mode_before=stat.S_IMODE(before.st_mode),
                )
            )
            if kind == "folder":
                waiting += [f"{one}/{name}" for name in _names(f"{self._lower}/{one}")]

    def _digest(self, layer: str, path: str, kind: FileType) -> str | None:
        if kind == "folder":
            return None
        real = f"{layer}/{path}"
        return text_digest(os.readlink(real)) if kind == "link" else file_digest(real)

    def _note_conflict(self, path: str, before: os.stat_result | None, now: os.stat_result | None) -> None:
        """Record a path that another process changed since the command began.

        For folders, only their own permission bits count.
        """
        if before is not None and not stat.S_ISDIR(before.st_mode):
            if before.st_ctime_ns > self._started_ns and before.st_ctime_ns != self._own.get(
                f"{self._prefix}{path}"
            ):
                self._conflicts.append(f"{self._prefix}{path}")
        elif before is None and now is not None and stat.S_ISREG(now.st_mode):
            above = _status(f"{self._lower}/{os.path.dirname(path)}")
            meanwhile = above is not None and above.st_ctime_ns > self._started_ns
            if meanwhile and _has_origin(f"{self._upper}/{path}"):
                self._conflicts.append(f"{self._prefix}{path}")

    def _drop(self, path: str, reason: DropReason) -> None:
        shown = os.fsencode(f"{self._prefix}{path}").decode("utf-8", "backslashreplace")
        self._dropped.append(DroppedEffect(path=shown, reason=reason))


def _is_unspeakable(path: str) -> bool:
    """Return whether a path is too deep or no text, so that the user can't be asked about it."""
    is_text = path.isascii() or path.encode("utf-8", "replace").decode() == path
    return not is_text or path.count("/") > DEEPEST or len(os.fsencode(path)) > LONGEST_PATH


def leads_out(path: str, target: str, root: str, outside: Iterable[str]) -> bool:
    """Return whether a link leads anywhere but into the workspace or to folders that are always read-only."""
    absolute = os.path.normpath(os.path.join(root, os.path.dirname(path), target))
    return not any(absolute == place or absolute.startswith(f"{place}/") for place in (root, *outside))


def is_whiteout(status: os.stat_result) -> bool:
    """Return whether this entry stands for a removed file."""
    return stat.S_ISCHR(status.st_mode) and status.st_rdev == 0


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


def _mode(path: str) -> int:
    found = _status(path)
    return 0 if found is None else found.st_mode


def _is_opaque(folder: str) -> bool:
    with suppress(OSError):
        return os.getxattr(folder, OPAQUE, follow_symlinks=False) == b"y"
    return False


def _has_origin(path: str) -> bool:
    with suppress(OSError):
        return bool(os.listxattr(path, follow_symlinks=False).count(f"{OVERLAY_ATTRIBUTES}origin"))
    return False
