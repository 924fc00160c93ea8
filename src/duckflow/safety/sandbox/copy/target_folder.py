"""Folder to which the effects of a command are applied.

A path is changed only if it is still as it was when the effects were read; a path that is already in the
wanted state counts as done. New content is durable before anything refers to it.
"""

import errno
import hashlib
import os
import shutil
import stat
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.files.effects import Effect
from duckflow.domain.frozen import Frozen
from duckflow.safety.descriptors import READ, closing_fd
from duckflow.safety.files.atomic import LARGEST, temporary_name
from duckflow.safety.files.confined_open import ConfinedFolder, rename_to_new
from duckflow.safety.files.git_directory import split_root
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy
from duckflow.safety.sandbox.copy.digests import file_digest, text_digest
from duckflow.safety.sandbox.copy.effect_reader import OVERLAY_ATTRIBUTES
from duckflow.safety.syscalls import c_call

_MOST_OPEN = 256
_SYNC_ONE_BY_ONE = 8
_BLOCK = 1 << 20


class PathChange(NamedTuple):
    """Path that is about to change, and its current content or link target."""

    effect: Effect
    """Of the kind created, changed, deleted or mode; a move is two of these."""
    before: bytes | None
    """None if nothing is there, or a folder, or content too large to keep."""


KeepChanges = Callable[[Sequence[PathChange]], None]
"""Called right before a batch is applied. Stores the old contents durably, or raises."""


class LeftEffect(Frozen):
    """Effect that was not applied."""

    path: str
    reason: str
    """`changed` if the file has changed since; otherwise the system's error message."""


class ChangedInFolder(OSError):
    """Raised if a path in the folder has changed since the effects were read."""


class TargetFolder:
    """Folder to change, and its git directory if that lies outside."""

    def __init__(self, copy: WorkspaceCopy, *, live: bool) -> None:
        self._copy = copy
        self._git_directory = copy.about.git_directory
        lower = (copy.about.workspace, *filter(None, (self._git_directory,)))
        self._roots = [ConfinedFolder(Path(one)) for one in lower]
        self._live = live
        self._changed: dict[str, int] = {}
        self.taken: list[Effect] = []
        self.left: list[LeftEffect] = []

    def __enter__(self) -> "TargetFolder":
        return self

    def __exit__(self, *_: object) -> None:
        self._sync_folders()
        for root in self._roots:
            root.close()

    def make(self, batch: list[Effect], keep: KeepChanges | None, unkept: set[str]) -> None:
        """Apply one batch: check the paths, store their contents, make new content durable, change."""
        changes: list[PathChange] = []
        for effect in batch:
            try:
                change = self._look(effect, read=keep is not None and effect.path not in unkept)
            except OSError as exc:
                self._leave(effect, exc)
                continue
            if change is not None:
                changes.append(change)
        if keep is not None and (kept := [one for one in changes if one.effect.path not in unkept]):
            keep(kept)
        self._prepare([one.effect for one in changes])
        for change in changes:
            try:
                self._change(change.effect)
                self.taken.append(change.effect)
            except OSError as exc:
                self._leave(change.effect, exc)

    def touch(self, paths: Iterable[str]) -> None:
        """Give files with unchanged content the time that the command set, because make compares times."""
        for path in paths:
            with suppress(OSError):
                status = os.lstat(self._copy.upper_path(path))
                folder, name = self._place(path)
                times = (status.st_atime_ns, status.st_mtime_ns)
                os.utime(name, ns=times, dir_fd=folder, follow_symlinks=False)

    def _look(self, effect: Effect, *, read: bool) -> PathChange | None:
        """Return the change to make, None if it is already made. Raise OSError if the path has changed."""
        found, status, content = self._now(effect.path, read=read)
        mode = None if status is None else stat.S_IMODE(status.st_mode)
        if effect.type == "folder":
            is_folder = status is not None and stat.S_ISDIR(status.st_mode)
            if effect.kind == "deleted":
                return PathChange(effect, None) if is_folder else self._done(effect)
            if is_folder and (effect.kind == "created" or mode == effect.mode_after):
                return self._done(effect) if mode == effect.mode_after else PathChange(effect, None)
            if status is not None and not is_folder:
                raise ChangedInFolder
            return PathChange(effect, None)
        if found == effect.after and (
            effect.after is None or mode == effect.mode_after or effect.type == "link"
        ):
            return self._done(effect)
        if found != effect.before:
            raise ChangedInFolder
        return PathChange(effect, content)

    def _done(self, effect: Effect) -> None:
        self.taken.append(effect)

    def _now(self, path: str, *, read: bool) -> tuple[str | None, os.stat_result | None, bytes | None]:
        """Return the digest, status and content of a path."""
        try:
            folder, name = self._place(path)
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return None, None, None
        except NotADirectoryError:
            return None, None, None
        if stat.S_ISLNK(status.st_mode):
            target = os.readlink(name, dir_fd=folder)
            return text_digest(target), status, os.fsencode(target)
        if not stat.S_ISREG(status.st_mode):
            return None, status, None
        opened = os.open(name, READ, dir_fd=folder)
        with os.fdopen(opened, "rb", buffering=0) as file:
            digest = hashlib.sha256()
            blocks: list[bytes] = []
            wanted = read and status.st_size <= LARGEST
            while block := file.read(_BLOCK):
                digest.update(block)
                if wanted:
                    blocks.append(block)
            return digest.hexdigest(), status, b"".join(blocks) if wanted else None

    def _prepare(self, effects: list[Effect]) -> None:
        """Finish the new files and make them durable, before anything refers to them."""
        files = [one for one in effects if one.type == "file" and one.kind in ("created", "changed")]
        opened: list[int] = []
        if self._live or not files:
            return
        for effect in files:
            path = self._copy.upper_path(effect.path)
            with suppress(OSError):
                for name in os.listxattr(path, follow_symlinks=False):
                    if name.startswith(OVERLAY_ATTRIBUTES) or self._gives_rights(name, path, effect.path):
                        os.removexattr(path, name, follow_symlinks=False)
                if len(files) <= _SYNC_ONE_BY_ONE:
                    opened.append(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC))
        for one in opened:
            os.fsync(one)
            os.close(one)
        if len(files) > _SYNC_ONE_BY_ONE:
            _sync_all(self._copy.upper)  # all layers of a copy are on one file system

    def _gives_rights(self, name: str, made: str, path: str) -> bool:
        """Return whether a new attribute gives access to other users, which the user was not shown."""
        if not name.startswith("system."):
            return False
        value = os.getxattr(made, name, follow_symlinks=False)
        with suppress(OSError):
            return os.getxattr(self._copy.lower_path(path), name, follow_symlinks=False) != value
        return True

    def _change(self, effect: Effect) -> None:
        if effect.path == ".":
            os.chmod(self._folder("."), effect.mode_after or 0)
            return
        folder, name = self._place(effect.path)
        if effect.kind == "deleted":
            remove = os.rmdir if effect.type == "folder" else os.unlink
            remove(name, dir_fd=folder)
            self._forget(effect.path)
        elif effect.kind == "mode":
            _set_mode(folder, name, effect.mode_after or 0)
        elif effect.type == "folder":
            with suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=folder)
            _set_mode(folder, name, (effect.mode_after or 0) | stat.S_IRWXU)
        elif effect.type == "link":
            temporary = temporary_name()
            os.symlink(effect.link_target, temporary, dir_fd=folder)
            self._put((folder, temporary), (folder, name), effect)
        else:
            self._put_file(effect, folder, name)

    def _put_file(self, effect: Effect, folder: int, name: str) -> None:
        source = self._copy.upper_path(effect.path)
        if file_digest(source) != effect.after:
            said = "still being written" if self._live else "the copy is not what was approved"
            raise OSError(errno.ESTALE, said)
        if not self._live:
            os.chmod(source, effect.mode_after or 0)
            above = os.open(os.path.dirname(source), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self._put((above, os.path.basename(source)), (folder, name), effect)
            except OSError as exc:
                if exc.errno != errno.EXDEV:
                    raise
            else:
                return
            finally:
                os.close(above)
        temporary = temporary_name()
        try:
            _copy_file(source, (folder, temporary), effect)
            self._put((folder, temporary), (folder, name), effect)
        except BaseException:
            with suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise

    def _put(self, source: tuple[int, str], target: tuple[int, str], effect: Effect) -> None:
        if effect.kind == "created":
            rename_to_new(source, target)
        else:
            os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])

    def _place(self, path: str) -> tuple[int, str]:
        above, _, name = path.rpartition("/")
        return self._folder(above or "."), name

    def _folder(self, path: str) -> int:
        """Return a folder by its real path. It stays open until the end, when its entries are synced."""
        if path not in self._changed:
            if len(self._changed) >= _MOST_OPEN:
                self._sync_folders()
            outside, below = split_root(f"{path}/", self._git_directory)
            self._changed[path] = self._roots[outside].open_folder(below.rstrip("/") or ".")
        return self._changed[path]

    def _forget(self, path: str) -> None:
        opened = self._changed.pop(path, None)
        if opened is not None:
            os.close(opened)

    def _sync_folders(self) -> None:
        opened = [*self._changed.values()]
        self._changed.clear()
        if len(opened) > _SYNC_ONE_BY_ONE and self.taken:
            for one in {os.fstat(one).st_dev: one for one in opened}.values():
                _sync_descriptor(one)
        for one in opened:
            if len(opened) <= _SYNC_ONE_BY_ONE and self.taken:
                os.fsync(one)
            os.close(one)

    def _leave(self, effect: Effect, exc: OSError) -> None:
        changed = isinstance(exc, (ChangedInFolder, FileExistsError))
        reason = "changed" if changed else exc.strerror or str(exc)
        self.left.append(LeftEffect(path=effect.path, reason=reason))


def _set_mode(folder: int, name: str, mode: int) -> None:
    """Set permission bits, but never through a link that another process put there."""
    with closing_fd(os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)) as opened:
        if stat.S_ISLNK(os.fstat(opened).st_mode):
            raise ChangedInFolder
        os.chmod(f"/proc/self/fd/{opened}", mode)


def _copy_file(source: str, target: tuple[int, str], effect: Effect) -> None:
    """Copy a file durably, with content, permission bits and time."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    with os.fdopen(opened, "rb", buffering=0) as reading:
        made = os.open(target[1], flags, 0o600, dir_fd=target[0])
        with os.fdopen(made, "wb") as writing:
            shutil.copyfileobj(reading, writing, _BLOCK)
            writing.flush()
            status = os.fstat(opened)
            os.fchmod(made, effect.mode_after or 0)
            os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(made)


def _sync_all(path: str) -> None:
    with closing_fd(os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as opened:
        _sync_descriptor(opened)


def _sync_descriptor(opened: int) -> None:
    """Sync the whole file system, which for many files is much faster than syncing each."""
    c_call("syncfs", opened)
