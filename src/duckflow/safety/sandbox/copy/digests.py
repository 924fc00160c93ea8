"""SHA-256 of files and link targets that a command left, whatever permission bits it set."""

import hashlib
import os
import stat
from contextlib import suppress

from duckflow.safety.descriptors import READ, closing_fd

_BLOCK = 1 << 20


def file_digest(path: str) -> str | None:
    """Return the SHA-256 of a regular file, None if it can't be read."""
    with suppress(OSError), closing_fd(_open(path)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            digest = hashlib.sha256()
            while block := os.read(opened, _BLOCK):
                digest.update(block)
            return digest.hexdigest()
    return None


def _open(path: str) -> int:
    """Open a file. If its owner may not read it, make it readable for a moment."""
    try:
        return os.open(path, READ)
    except PermissionError:
        mode = stat.S_IMODE(os.lstat(path).st_mode)
        os.chmod(path, mode | stat.S_IRUSR, follow_symlinks=True)
        try:
            return os.open(path, READ)
        finally:
            os.chmod(path, mode, follow_symlinks=True)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()
