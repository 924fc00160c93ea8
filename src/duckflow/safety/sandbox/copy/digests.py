"""SHA-256 of what a command left: of files whatever bits it gave them, and of the targets of links."""

import hashlib
import os
import stat

_BLOCK = 1 << 20


def file_digest(path: str) -> str | None:
    """SHA-256 of a regular file, None if it can't be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(path, flags)
    except PermissionError:
        opened = _open_closed(path, flags)
    except OSError:
        return None
    if opened is None:
        return None
    try:
        if not stat.S_ISREG(os.fstat(opened).st_mode):
            return None
        digest = hashlib.sha256()
        while block := os.read(opened, _BLOCK):
            digest.update(block)
        return digest.hexdigest()
    except OSError:
        return None
    finally:
        os.close(opened)


def _open_closed(path: str, flags: int) -> int | None:
    """A file of our own that its owner may not read: open it for a moment, and close it again."""
    try:
        mode = os.lstat(path).st_mode
        os.chmod(path, stat.S_IMODE(mode) | stat.S_IRUSR, follow_symlinks=True)
        try:
            return os.open(path, flags)
        finally:
            os.chmod(path, stat.S_IMODE(mode), follow_symlinks=True)
    except OSError:
        return None


def text_digest(text: str) -> str:
    """SHA-256 of a link's target."""
    return hashlib.sha256(os.fsencode(text)).hexdigest()
