"""SHA-256 of what a command left: of files whatever bits it gave them, and of the targets of links."""

import hashlib
import os
import stat
from contextlib import suppress

from duckflow.safety.descriptors import READ, held

_BLOCK = 1 << 20


def file_digest(path: str) -> str | None:
    """SHA-256 of a regular file, None if it can't be read."""
    with suppress(OSError), held(_open(path)) as opened:
        if stat.S_ISREG(os.fstat(opened).st_mode):
            digest = hashlib.sha256()
            while block := os.read(opened, _BLOCK):
                digest.update(block)
            return digest.hexdigest()
    return None


def _open(path: str) -> int:
    """Also a file of our own that its owner may not read: that is opened for a moment."""
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
    """SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()
