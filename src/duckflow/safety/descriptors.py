"""File descriptors that are always closed again, and small reads through them. Standard library only."""

import os
import stat
from collections.abc import Generator
from contextlib import contextmanager, suppress

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to read an untrusted path: do not follow a link, do not block on a pipe."""


@contextmanager
def closing_fd(descriptor: int) -> Generator[int]:
    """Close the descriptor when the block ends."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def read_regular(path: str | os.PathLike[str], most: int) -> bytes | None:
    """Return the first bytes of a regular file, None for a link, a pipe, a folder or a failure."""
    with suppress(OSError), closing_fd(os.open(path, READ)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            return os.read(opened, most)
    return None
