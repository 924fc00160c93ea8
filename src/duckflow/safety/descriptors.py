"""File descriptors that are always closed again, and small reads through them. Standard library only."""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to read an untrusted path: do not follow a link, do not block on a pipe."""

CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
"""Flags to create a file that does not exist yet."""

_BLOCK = 1 << 20


@contextmanager
def closing_fd(descriptor: int) -> Generator[int]:
    """Close the descriptor when the block ends."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def temporary_in(folder: int) -> Generator[str]:
    """Give the name for a temporary file in an open folder. Remove the file if the block fails."""
    name = temporary_name()
    try:
        yield name
    except BaseException:
        with suppress(OSError):  # report the first failure, not this one; a later write removes leftovers
            os.unlink(name, dir_fd=folder)
        raise


def temporary_name() -> str:
    """Return a new name for a temporary file."""
    return f".duckflow-{os.urandom(8).hex()}.tmp"


def copy_to_new(source: int, folder: int, name: str, mode: int, *, durable: bool = True) -> None:
    """Copy an open file to a new one in a folder, with its holes, its time and these permission bits."""
    with closing_fd(os.open(name, CREATE, 0o600, dir_fd=folder)) as made:
        _copy_data(source, made)
        status = os.fstat(source)
        os.fchmod(made, mode)
        os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
        if durable:
            os.fsync(made)


def _copy_data(source: int, made: int) -> None:
    size = os.fstat(source).st_size
    for start, end in data_ranges(source, size):
        at = start
        while at < end and (block := os.pread(source, min(_BLOCK, end - at), at)):
            at += _write_all(made, block, at)
    os.ftruncate(made, size)


def _write_all(made: int, block: bytes, at: int) -> int:
    done = 0
    while done < len(block):
        done += os.pwrite(made, memoryview(block)[done:], at + done)
    return done


def data_ranges(opened: int, size: int) -> Iterator[tuple[int, int]]:
    """Return the parts of an open file up to `size` that are not holes, as far as its file system tells."""
    end = 0
    while end < size:
        try:
            start = os.lseek(opened, end, os.SEEK_DATA)
            end = min(size, os.lseek(opened, start, os.SEEK_HOLE))
        except OSError as exc:
            if exc.errno == errno.ENXIO:  # only a hole is left
                return
            start, end = end, size
        yield start, end


def set_mode(opened: int, mode: int) -> None:
    """Set the permission bits of an open file or folder, even if it was opened only to be examined."""
    os.chmod(f"/proc/self/fd/{opened}", mode)  # noqa: PTH101 - the name of a descriptor, not a path


def open_readable(folder: int, name: str) -> int:
    """Open a file in an open folder. If its owner may not read it, make it readable while opening."""
    try:
        return os.open(name, READ, dir_fd=folder)
    except PermissionError:
        flags = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
        with closing_fd(os.open(name, flags, dir_fd=folder)) as seen:
            status = os.fstat(seen)
            if not stat.S_ISREG(status.st_mode):
                raise
            mode = stat.S_IMODE(status.st_mode)
            set_mode(seen, mode | stat.S_IRUSR)
            try:
                return os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_CLOEXEC)
            finally:
                set_mode(seen, mode)


def read_regular(path: str | os.PathLike[str], most: int) -> bytes | None:
    """Return up to `most` bytes from the start of a regular file, None for anything else or a failure."""
    with suppress(OSError), closing_fd(os.open(path, READ)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return os.read(opened, most)
    return None
