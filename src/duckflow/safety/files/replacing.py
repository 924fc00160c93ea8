"""Replace or remove a file only if it is still the expected one, without a gap between check and change.

The file is moved aside in one step, by exchange or rename, and compared there. If someone changed it in the
meantime, it is moved back. Places are given as an open folder and a name in it.
"""

import errno
import os
import stat
from collections.abc import Callable
from contextlib import suppress

from duckflow.safety.files.confined_open import rename_to_new
from duckflow.safety.syscalls import rename_at

Place = tuple[int, str]

Identity = tuple[int, int]
"""Device and inode number."""

Check = Callable[[Place], bool]
"""Returns whether the file at a place is the expected one."""

_EXCHANGE = 2
_UNSUPPORTED = (errno.EINVAL, errno.ENOSYS, errno.EOVERFLOW)
"""Errors of an exchange after which a rename may still work. EOVERFLOW: on a copy, the old file belongs to a
group that the copy does not know, so it can be replaced there but not moved."""

_MOST_EXCHANGES = 8


class NotAsExpected(OSError):
    """Raised if someone changed a file after it was examined. The change is kept, nothing is replaced."""


def put_in_place(new: Place, target: Place, is_expected: Check) -> bool:
    """Put a new file in the place of the target. The old one is then at the place of the new one.

    Returns False if the file system can't exchange files; then the old file is gone. If this fails, the new
    file is removed.
    """
    ours = identity_at(new)
    try:
        return _exchange(new, target, is_expected, ours)
    except BaseException:
        remove_if_same(new, ours)
        raise


def _exchange(new: Place, target: Place, is_expected: Check, ours: Identity | None) -> bool:
    try:
        rename_at(new, target, _EXCHANGE)
    except FileNotFoundError as exc:
        raise NotAsExpected(errno.ESTALE, "removed meanwhile") from exc
    except OSError as exc:
        if exc.errno not in _UNSUPPORTED:
            raise
        if not is_expected(target):
            raise NotAsExpected(errno.ESTALE, "changed meanwhile") from exc
        os.rename(new[1], target[1], src_dir_fd=new[0], dst_dir_fd=target[0])
        return False
    if not is_expected(new):
        put_back(new, target, ours)
        raise NotAsExpected(errno.ESTALE, "changed meanwhile")
    return True


def move_aside(target: Place, aside: Place, is_expected: Check) -> None:
    """Move a file to a new name, to be removed there."""
    os.rename(target[1], aside[1], src_dir_fd=target[0], dst_dir_fd=aside[0])
    if not is_expected(aside):
        give_back(aside, target)
        raise NotAsExpected(errno.ESTALE, "changed meanwhile")


def put_back(held: Place, target: Place, ours: Identity | None) -> None:
    """Exchange again, so that the target is the newest file that is not ours. Ours is then at `held`."""
    for _ in range(_MOST_EXCHANGES):
        before = identity_at(held)
        try:
            rename_at(held, target, _EXCHANGE)
        except FileNotFoundError:
            with suppress(OSError):
                rename_to_new(held, target)
            return
        if identity_at(held) == ours:
            return
        ours = before  # someone replaced ours: the file that came out now is the newest


def give_back(aside: Place, target: Place) -> None:
    """Move a file back to its name, unless there is a newer file."""
    try:
        rename_to_new(aside, target)
    except FileExistsError:
        os.unlink(aside[1], dir_fd=aside[0])


def identity_at(place: Place) -> Identity | None:
    """Return device and inode number of what is at a place, None if there is nothing."""
    with suppress(OSError):
        found = os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
        return found.st_dev, found.st_ino
    return None


def remove_if_same(place: Place, ours: Identity | None) -> None:
    """Remove a file that Duckflow made, but nothing that someone else put there."""
    if ours is not None and identity_at(place) == ours:
        with suppress(OSError):
            os.unlink(place[1], dir_fd=place[0])


def same_file(one: os.stat_result, other: os.stat_result) -> bool:
    """Return whether two examinations show the same file with the same size and time of change."""
    first, second = (
        (found.st_dev, found.st_ino, stat.S_IFMT(found.st_mode), found.st_size, found.st_mtime_ns)
        for found in (one, other)
    )
    return first == second
