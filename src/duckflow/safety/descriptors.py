"""Open files and folders as numbers, closed in the end whatever happens. Standard library only."""

import os
from collections.abc import Generator
from contextlib import contextmanager

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
"""To read what may have been put there to deceive: no link is followed, and a pipe is not waited for."""


@contextmanager
def held(descriptor: int) -> Generator[int]:
    """A descriptor that is closed in the end."""
    try:
        yield descriptor
    finally:
        os.close(descriptor)
