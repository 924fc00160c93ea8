"""Temporary files beside the files they replace, and what killed processes left there (SAFETY 11, 12).

Before a new file is exchanged with an old one, it gets a name that tells its own inode number and the hash of
the old content. So a file with such a name that is neither of them is what someone saved at the moment of the
exchange, and goes back to its place. The name of a file to be removed tells its former name instead.
"""

import hashlib
import os
import stat
import time
from contextlib import suppress

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import READ, closing_fd, temporary_name
from duckflow.safety.files.confined_open import rename_to_new
from duckflow.safety.files.replacing import Place, give_back, put_back, remove_if_same

_TEMPORARY = lazy_regex(
    r"(?s)\.duckflow-(?:[0-9a-f]{16}|(?P<inode>[0-9a-f]{16})-(?P<replaced>[0-9a-f]{16})"
    r"|(?P<removed>[0-9a-f]{16})=(?P<name>.+))\.tmp"
)
_LONGEST_NAME = 255
_SURELY_LEFT_S = 60
"""Exchanges take milliseconds, so that a file with such a name was left behind if it is older."""


def is_temporary(name: str) -> bool:
    """Return whether this is the name of a temporary file, such as a killed process may leave behind."""
    return _TEMPORARY.fullmatch(name) is not None


def name_for_exchange(new: Place, old_digest: str) -> Place:
    """Rename a new file before its exchange with an old one. Return its place."""
    folder, name = new
    inode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_ino
    named = folder, f".duckflow-{inode:016x}-{old_digest[:16]}.tmp"
    with suppress(FileExistsError):
        rename_to_new(new, named)
        return named
    return new


def aside_for(target: Place, old_digest: str) -> Place:
    """Return the place to which a file is moved before its removal."""
    name = f".duckflow-{old_digest[:16]}={target[1]}.tmp"
    if len(os.fsencode(name)) > _LONGEST_NAME or os.access(name, os.F_OK, dir_fd=target[0]):
        name = temporary_name()
    return target[0], name


def sweep(folder: int, *, older_than_s: float) -> None:
    """Remove temporary files that killed processes left in a folder. Give back what someone had saved."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if is_temporary(entry.name)]
    for name in names:
        with suppress(FileNotFoundError):
            _settle(folder, name, older_than_s)


def _settle(folder: int, name: str, older_than_s: float) -> None:
    found = _TEMPORARY.fullmatch(name)
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    inode = int(found["inode"] or "0", 16) if found else 0
    former = found["name"] if found else None
    if found is None or (not former and inode in (0, status.st_ino)):
        left_for, digest = time.time() - status.st_mtime, None
    else:
        left_for, digest = time.time() - status.st_ctime, found["replaced"] or found["removed"]
    if digest is not None and not _digest(folder, name, status).startswith(digest):
        if left_for < min(older_than_s, _SURELY_LEFT_S):
            return
        if former:
            give_back((folder, name), (folder, former))
        else:
            _exchange_back(folder, name, (status.st_dev, inode))
    elif left_for >= older_than_s:
        os.unlink(name, dir_fd=folder)


def _exchange_back(folder: int, name: str, ours: tuple[int, int]) -> None:
    """Put a file back in the place that our file has. If ours is gone, leave it alone."""
    with os.scandir(folder) as entries:
        target = next((entry.name for entry in entries if entry.inode() == ours[1]), None)
    if target is not None:
        put_back((folder, name), (folder, target), ours)
        remove_if_same((folder, name), ours)


def _digest(folder: int, name: str, status: os.stat_result) -> str:
    if stat.S_ISLNK(status.st_mode):
        return hashlib.sha256(os.fsencode(os.readlink(name, dir_fd=folder))).hexdigest()
    if not stat.S_ISREG(status.st_mode):
        return ""
    with closing_fd(os.open(name, READ, dir_fd=folder)) as opened, os.fdopen(os.dup(opened), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
