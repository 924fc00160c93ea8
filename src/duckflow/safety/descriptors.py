"""File descriptors that are always closed again. Standard library only."""

import os
from collections.abc import Generator
from contextlib import contextmanager

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""Flags to read an untrusted path: do not follow a link, do not block on a pipe."""


@contextmanager
def closing_fd(descriptor: int) -> Generator[int]:
    """Close the descriptor when the block ends."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
