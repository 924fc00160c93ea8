"""Rename a folder on a copy in one step, which the overlay file system refuses for older folders.

An ordinary user can't make overlay record such a move, so the kernel holds renames until this process has
inspected them. A folder is renamed here for the command. Where overlay refuses, its contents are first moved
into a new folder, unless it contains a mount, such as an empty file over a secret. Standard library only.
"""

import contextlib
import ctypes
import errno
import os
import stat
from typing import NamedTuple

from duckflow.safety.descriptors import closing_fd, temporary_name
from duckflow.safety.sandbox.child.notifications import HeldCall, take
from duckflow.safety.sandbox.child.overlay import mount_points
from duckflow.safety.sandbox.child.seccomp import rename_call
from duckflow.safety.syscalls import IN_ROOT, NO_MAGICLINKS, c_call, fork_child, open_at, rename_at

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC
_NO_REPLACE = 1
_OVERLAY = (0x794C7630).to_bytes(8, "little")
_IN_THE_WAY = (errno.EXDEV, errno.ENOTEMPTY, errno.EEXIST)


class _Place(NamedTuple):
    """File or folder given as an open folder and a name in it, and its path as the command sees it."""

    folder: int
    name: str
    path: str


class FolderMoves:
    """Answers renames by commands in one sandbox. `copied` are the folders of which commands see a copy."""

    def __init__(self, listener: int, copied: list[str]) -> None:
        self.listener = listener
        self._copied = copied

    def answer(self) -> None:
        """Receive one request, and let it proceed or start a process that handles it."""
        call = take(self.listener)
        if call is None:
            return
        source = target = None
        try:
            names = rename_call(call.number, call.words)
            source = self._find(call, names[0], names[1])
            if source is not None and not names[4] & ~_NO_REPLACE and self._is_folder(source):
                target = self._find(call, names[2], names[3])
            if source is None or target is None:
                call.answer()
            else:
                _hand_over(call, source, target, names[4])
        except (OSError, ValueError):
            call.answer()
        finally:
            for place in filter(None, (source, target)):
                os.close(place.folder)

    def _is_folder(self, place: _Place) -> bool:
        """Return whether this is a folder of a copy with nothing mounted on it."""
        found = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
        return stat.S_ISDIR(found.st_mode) and found.st_dev == os.fstat(place.folder).st_dev

    def _find(self, call: HeldCall, base: int, address: int) -> _Place | None:
        """Find the file that a call names, as the calling process sees it. None if it is not on a copy."""
        process, path = call.process, call.text(address).rstrip("/")
        if not path.startswith("/"):
            path = f"{os.readlink(call.place(base))}/{path}"
        above, _, name = path.rpartition("/")
        if name in ("", ".", ".."):
            return None
        with closing_fd(os.open(f"/proc/{process}/root", _LOOK)) as root:
            folder = open_at(root, above or "/", _LOOK, IN_ROOT | NO_MAGICLINKS)
        real = os.readlink(f"/proc/self/fd/{folder}")
        kind = ctypes.create_string_buffer(256)
        c_call("fstatfs", folder, kind)
        if kind.raw[:8] != _OVERLAY or not any(f"{real}/".startswith(f"{one}/") for one in self._copied):
            os.close(folder)
            return None
        return _Place(folder, name, f"{real}/{name}")


def _hand_over(call: HeldCall, source: _Place, target: _Place, flags: int) -> None:
    """Rename in another process, because it may take long and this one must keep watching the limits."""

    def rename() -> None:
        mounted = mount_points(call.process)
        call.check()
        call.answer(_rename(source, target, flags, mounted))

    fork_child(rename)


def _rename(source: _Place, target: _Place, flags: int, mounted: list[str]) -> int:
    try:
        if any(f"{path}/".startswith(f"{source.path}/") for path in mounted):
            return errno.EXDEV
        code = _try(source, target, flags)
        if code != errno.EXDEV or f"{target.path}/".startswith(f"{source.path}/"):
            return code
        with contextlib.suppress(FileNotFoundError):
            if os.listdir(_opened(target)):
                return errno.ENOTEMPTY
        return _remake(source, target, flags)
    except (OSError, RecursionError):
        return errno.EXDEV


def _remake(source: _Place, target: _Place, flags: int) -> int:
    new = _Place(source.folder, temporary_name(), "")
    os.mkdir(new.name, 0o700, dir_fd=new.folder)
    try:
        _move_all(_opened(source), _opened(new))
        code = _try(new, target, flags)
    except (OSError, RecursionError):
        code = errno.EXDEV
    if code:
        _move_all(_opened(new), _opened(source))
    os.rmdir((new if code else source).name, dir_fd=source.folder)
    return code


def _move_all(source: int, target: int) -> None:
    """Move the contents of one folder into another, folder by folder, and close both descriptors."""
    for name in os.listdir(source):
        try:
            os.rename(name, name, src_dir_fd=source, dst_dir_fd=target)
        except OSError as exc:
            if exc.errno not in _IN_THE_WAY:
                raise
            below = os.open(name, _FOLDER, dir_fd=source)
            with contextlib.suppress(FileExistsError):
                os.mkdir(name, 0o700, dir_fd=target)
            _move_all(below, os.open(name, _FOLDER, dir_fd=target))
            os.rmdir(name, dir_fd=source)
    like = os.fstat(source)
    with contextlib.suppress(PermissionError):
        os.fchown(target, like.st_uid, like.st_gid)
    os.fchmod(target, stat.S_IMODE(like.st_mode))
    os.utime(target, ns=(like.st_atime_ns, like.st_mtime_ns))
    os.close(source)
    os.close(target)


def _opened(place: _Place) -> int:
    return os.open(place.name, _FOLDER, dir_fd=place.folder)


def _try(source: _Place, target: _Place, flags: int) -> int:
    try:
        rename_at(source[:2], target[:2], flags)
    except OSError as exc:
        return exc.errno or errno.EXDEV
    return 0
