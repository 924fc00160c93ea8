"""Open files beneath one folder, safely even while other processes change links and names in it.

The kernel confines the path (`openat2` with RESOLVE_BENEATH). Kernels without that follow no link at all.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache

from duckflow.safety.descriptors import closing_fd
from duckflow.safety.syscalls import BENEATH, LINUX, NO_MAGICLINKS, NO_SYMLINKS, open_at, rename_at

OpenInside = Callable[[int, str, int], int]
"""Called as (folder descriptor, relative path, flags). Returns a descriptor. Never creates a file."""

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
LOOK = getattr(os, "O_PATH", os.O_RDONLY | os.O_NONBLOCK) | os.O_CLOEXEC
"""Flags to examine a file; on Linux this does not open it."""

_NO_REPLACE = 1
_NO_HARD_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)


def open_resolved(root: int, path: str, flags: int) -> int:
    """Open a path. The kernel follows links only as long as they stay beneath `root`."""
    return open_at(root, path, flags | os.O_CLOEXEC, BENEATH | NO_MAGICLINKS)


def open_walking(root: int, path: str, flags: int) -> int:
    """Open a path one name at a time. Fail with ELOOP at the first link."""
    *above, last = path.split("/")
    with closing_fd(_descend(root, above, create=False)) as folder:
        return _open_plain(last, flags, folder)


def open_exact(root: int, path: str, flags: int) -> int:
    """Open a path in which no name may be a link."""
    if kernel_resolves():
        return open_at(
            root, path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, BENEATH | NO_SYMLINKS | NO_MAGICLINKS
        )
    return open_walking(root, path, flags)


@cache
def kernel_resolves() -> bool:
    """Return whether `open_resolved` works on this kernel and /proc shows the path of an open file."""
    if not LINUX:
        return False
    with suppress(OSError), closing_fd(os.open("/", LOOK | os.O_DIRECTORY)) as root:
        os.close(open_resolved(root, ".", LOOK))
        return _name_of(root) == "/"
    return False


class ConfinedFolder:
    """Folder that is held open, so that it stays the same folder if someone renames it."""

    def __init__(self, root: str | os.PathLike[str], opener: OpenInside | None = None) -> None:
        self._root = os.open(root, FOLDER)
        self._opener = opener or (open_resolved if kernel_resolves() else open_walking)
        self._follows = self._opener is open_resolved

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode number, which stay the same when the folder is renamed."""
        status = os.fstat(self._root)
        return status.st_dev, status.st_ino

    def open(self, path: str, flags: int) -> int:
        """Return a descriptor of an existing file or folder."""
        return self._opener(self._root, path, flags)

    def open_folder(self, real: str, *, create: bool = False) -> int:
        """Open a folder by its real path without following links. `create` makes missing folders."""
        return _descend(self._root, [] if real == "." else real.split("/"), create=create)

    def missing(self, real: str) -> tuple[str, ...]:
        """Return the missing folders of a real path, outermost first."""
        names = real.split("/")
        for count in range(1, len(names) + 1):
            try:
                os.close(_descend(self._root, names[:count], create=False))
            except FileNotFoundError:
                return tuple("/".join(names[:end]) for end in range(count, len(names) + 1))
        return ()

    def locate(self, opened: int, path: str) -> str:
        """Return the real path, relative to the folder, of a descriptor that was opened as `path`."""
        if not self._follows:
            return path
        root, real = _name_of(self._root), _name_of(opened)
        if real == root:
            return "."
        if not real.startswith(root.rstrip("/") + "/"):
            raise OSError(errno.EXDEV, os.strerror(errno.EXDEV), path)
        return real[len(root.rstrip("/")) + 1 :]

    def resolve(self, path: str) -> str:
        """Return the real relative path, also of a missing file. Fail with ELOOP on a broken link."""
        missing: list[str] = []
        while True:
            try:
                with closing_fd(self.open(path, LOOK)) as opened:
                    real = self.locate(opened, path)
                return "/".join([*([] if real == "." else [real]), *missing]) or "."
            except FileNotFoundError:
                if path == ".":
                    raise
            self._check_dangling(path)
            above, _, name = path.rpartition("/")
            missing.insert(0, name)
            path = above or "."

    def close(self) -> None:
        """Close the folder."""
        os.close(self._root)

    def _check_dangling(self, path: str) -> None:
        above, _, name = path.rpartition("/")
        with (
            suppress(FileNotFoundError),
            closing_fd(self.open(above or ".", LOOK | os.O_DIRECTORY)) as folder,
        ):
            if _is_link(name, folder):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)


def _name_of(opened: int) -> str:
    return os.readlink(f"/proc/self/fd/{opened}")  # noqa: PTH115 - called for every file, and pathlib is slow


def rename_to_new(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Rename a file, each side given as (folder, name). Raise FileExistsError if the target exists."""
    try:
        return rename_at(source, target, _NO_REPLACE)
    except OSError as exc:
        if exc.errno not in (errno.EINVAL, errno.ENOSYS):  # these mean that the file system can't do this
            raise
    try:
        os.link(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0], follow_symlinks=False)
    except OSError as exc:
        if exc.errno not in _NO_HARD_LINKS:
            raise
        _rename_unless_there(source, target)
    else:
        os.unlink(source[1], dir_fd=source[0])


def _rename_unless_there(source: tuple[int, str], target: tuple[int, str]) -> None:
    """Check and then rename, with a gap in between. Some file systems offer nothing better."""
    try:
        os.stat(target[1], dir_fd=target[0], follow_symlinks=False)
    except FileNotFoundError:
        os.rename(source[1], target[1], src_dir_fd=source[0], dst_dir_fd=target[0])
    else:
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target[1])


def _descend(root: int, names: list[str], *, create: bool) -> int:
    folder = os.open(".", FOLDER, dir_fd=root)
    try:
        for name in names:
            folder = _step(folder, name, create=create)
    except BaseException:
        os.close(folder)
        raise
    return folder


def _step(folder: int, name: str, *, create: bool) -> int:
    """Open the folder `name` in `folder`, then close `folder`."""
    try:
        below = _open_plain(name, FOLDER, folder)
    except FileNotFoundError:
        if not create:
            raise
        with suppress(FileExistsError):
            os.mkdir(name, dir_fd=folder)
            os.fsync(folder)
        below = _open_plain(name, FOLDER, folder)
    os.close(folder)
    return below


def _open_plain(name: str, flags: int, folder: int) -> int:
    """Open a name that must not be a link. The check is needed because O_PATH would open the link itself."""
    try:
        opened = os.open(name, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
    except OSError as exc:
        if exc.errno in (errno.ENOTDIR, errno.EMLINK) and _is_link(name, folder):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name) from exc
        raise
    if stat.S_ISLNK(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), name)
    return opened


def _is_link(name: str, folder: int) -> bool:
    try:
        return stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False
