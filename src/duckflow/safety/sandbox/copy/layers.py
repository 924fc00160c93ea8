"""Folders of a copy, opened by descriptor: no name on the way to a file may be a link.

Commands can swap a folder for a link at any moment. So nothing here is opened by a path that the kernel would
resolve through links, and permissions are set and restored on the open folder itself.
"""

import hashlib
import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import cache

from duckflow.domain.files.effects import LARGEST_KEPT
from duckflow.safety.descriptors import closing_fd, data_ranges, open_readable, set_mode
from duckflow.safety.files.confined_open import FOLDER, LOOK, open_exact

_BLOCK, _PAGE = 1 << 20, 1 << 12
_ZEROS = bytes(_BLOCK)
_ENTER = stat.S_IRUSR | stat.S_IXUSR


class Layer:
    """One folder of a copy, or the folder that was copied. Paths are relative to it; "" is the folder."""

    def __init__(self, root: str) -> None:
        self.root = root
        self._opened = os.open(root, LOOK | os.O_DIRECTORY | os.O_NOFOLLOW)

    def close(self) -> None:
        """Close the folder."""
        os.close(self._opened)

    def open(self, path: str, flags: int) -> int:
        """Open a path in which no name is a link. Raise OSError otherwise."""
        if path:
            return open_exact(self._opened, path, flags)
        if flags & os.O_PATH:
            return os.dup(self._opened)
        return os.open(f"/proc/self/fd/{self._opened}", flags)  # "." fails without search permission

    @contextmanager
    def place(self, path: str) -> Generator[tuple[int, str]]:
        """Open the folder of a path, and give it with the last name."""
        above, _, name = path.rpartition("/")
        with closing_fd(self.open(above, LOOK | os.O_DIRECTORY)) as folder:
            yield folder, name or "."

    def status(self, path: str) -> os.stat_result | None:
        """Return the status of a file, link or folder, None if there is none."""
        with suppress(OSError), self.place(path) as (folder, name):
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        return None

    def content(self, path: str, most: int) -> bytes | None:
        """Return a file's content or a link's target; None if it is neither or has over `most` bytes."""
        with suppress(OSError), self.place(path) as (folder, name):
            with suppress(OSError):
                return os.fsencode(os.readlink(name, dir_fd=folder))
            with closing_fd(open_readable(folder, name)) as opened:
                return read_whole(opened, most)
        return None


class ClosedFolder:
    """Folder that its owner may not enter, made enterable until `restore`."""

    def __init__(self, opened: int) -> None:
        self._opened = opened
        self._mode = stat.S_IMODE(os.fstat(opened).st_mode)
        try:
            set_mode(opened, self._mode | stat.S_IRWXU)
        except BaseException:
            os.close(opened)
            raise

    def restore(self) -> None:
        """Give the folder its permission bits back."""
        try:
            set_mode(self._opened, self._mode)
        finally:
            os.close(self._opened)


def open_to_list(layer: Layer, path: str) -> tuple[int, ClosedFolder | None]:
    """Open a folder to read its entries, and make it enterable for as long as that takes."""
    with suppress(PermissionError):
        opened = layer.open(path, FOLDER)
        if os.geteuid() == 0 or os.fstat(opened).st_mode & _ENTER == _ENTER:
            return opened, None
        os.close(opened)
    closed = ClosedFolder(layer.open(path, LOOK | os.O_DIRECTORY))
    try:
        return layer.open(path, FOLDER), closed
    except BaseException:
        closed.restore()
        raise


def read_whole(opened: int, most: int) -> bytes | None:
    """Return the content of an open regular file, None for anything else and above `most` bytes."""
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most:
        return None
    blocks: list[bytes] = []
    size = 0
    while size <= most and (block := os.read(opened, most + 1 - size)):
        blocks.append(block)
        size += len(block)
    return b"".join(blocks) if size <= most else None


def file_digest(opened: int) -> str:
    """Return the SHA-256 of an open regular file. Of a file too large to keep, only pages with data count.

    So holes cost nothing, and a copy without them has the same digest.
    """
    status = os.fstat(opened)
    if not stat.S_ISREG(status.st_mode):
        raise OSError("not a regular file")
    if status.st_size <= LARGEST_KEPT:
        hole = next((start for start, _ in data_ranges(opened, status.st_size)), status.st_size)
        digest = _zeros_hashed(hole // _BLOCK).copy()
        os.lseek(opened, hole - hole % _BLOCK, os.SEEK_SET)
        while block := os.read(opened, _BLOCK):
            digest.update(block)
        return digest.hexdigest()
    digest = hashlib.sha256(b"%016x" % status.st_size)
    done = 0
    for start, end in data_ranges(opened, status.st_size):
        for first in range(max(done, start - start % _PAGE), end, _BLOCK):
            done = min(first + _BLOCK, end + -end % _PAGE)
            block = os.pread(opened, done - first, first)
            for at in range(0, len(block), _PAGE):
                page = block[at : at + _PAGE]
                if page != _ZEROS[: len(page)]:
                    digest.update(b"%016x" % (first + at) + page)
    return digest.hexdigest()


@cache
def _zeros_hashed(blocks: int) -> "hashlib._Hash":  # pyright: ignore[reportPrivateUsage]
    """Return the state of a hash after that many empty blocks, with which many sparse files begin."""
    if blocks == 0:
        return hashlib.sha256()
    digest = _zeros_hashed(blocks - 1).copy()
    digest.update(_ZEROS)
    return digest


def text_digest(text: str) -> str:
    """Return the SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()


def attribute(folder: int, name: str, wanted: str) -> bytes | None:
    """Return an extended attribute of an entry of an open folder, None if it has none."""
    with suppress(OSError):
        return os.getxattr(f"/proc/self/fd/{folder}/{name}", wanted, follow_symlinks=False)
    return None
