"""File descriptors that are always closed again, and small reads through them. Standard library only."""

import os
import stat
from collections.abc import Generator
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


def copy_to_new(source: int, folder: int, name: str, mode: int) -> None:
    """Copy an open file to a new one in a folder, durably, with its time and these permission bits."""
    made = os.open(name, CREATE, 0o600, dir_fd=folder)
    with os.fdopen(made, "wb") as writing:
        while block := os.read(source, _BLOCK):
            writing.write(block)
        writing.flush()
        status = os.fstat(source)
        os.fchmod(made, mode)
        os.utime(made, ns=(status.st_atime_ns, status.st_mtime_ns))
        os.fsync(made)


def read_regular(path: str | os.PathLike[str], most: int) -> bytes | None:
    """Return up to `most` bytes from the start of a regular file, None for anything else or a failure."""
    with suppress(OSError), closing_fd(os.open(path, READ)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return os.read(opened, most)
    return None
