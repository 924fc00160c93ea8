"""Atomic file replacement: readers always see either the complete old content or the complete new content."""

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import LARGEST_KEPT
from duckflow.safety.descriptors import CREATE, READ, closing_fd, temporary_in
from duckflow.safety.files.confined_open import rename_to_new
from duckflow.safety.files.replacing import NotAsExpected, Place, move_aside, put_in_place
from duckflow.safety.files.temporary import aside_for, name_for_exchange, sweep

ANY = "any"
"""Value for `expected`: replace the file whatever its content."""

LARGEST = LARGEST_KEPT
"""Largest file, in bytes, that is compared, kept or written."""

_LEFT_OVER_S = 3600
_SAFE_BITS = 0o777  # new content does not get the set-user-id bit of the old file
_BLOCK = 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link (name the file itself)",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


class ChangedMeanwhile(ToolError):
    """Raised when a file changed after the action was planned. Nothing was written."""


class FilePlace(NamedTuple):
    """Location of a file: open folder, name in that folder, path to show in messages, and real path."""

    folder: int
    name: str
    path: str
    real: str
    folders: tuple[str, ...] = ()
    """Folders that were just created for this file."""


class FileContent(NamedTuple):
    """Content and permission bits of a file."""

    data: bytes
    mode: int

    @property
    def digest(self) -> str:
        """SHA-256 of the content."""
        return hashlib.sha256(self.data).hexdigest()


Keep = Callable[[FilePlace, FileContent | None, FileContent | None], None]
"""Called as (place, before, after) right before a change. Must store the old content durably or raise."""


def replace(
    place: FilePlace, data: bytes, expected: str | None, keep: Keep | None = None, mode: int | None = None
) -> None:
    """Write `data` to a file whose current content must hash to `expected` (None: must not exist)."""
    folder, name, path = place[:3]
    if len(data) > LARGEST:
        raise ToolError(
            f"{path}: {len(data)} bytes are too many to write; {LARGEST} at most.",
            "reason.too_large",
            path=path,
        )
    like = regular_status(place)
    before = read_now(place)
    compare(place, before, expected)
    sweep(folder, older_than_s=_LEFT_OVER_S)
    with temporary_in(folder) as temporary:
        mode_after = _write_new((folder, temporary), data, like, mode)
        if keep is not None:
            keep(place, before, FileContent(data, mode_after))
        compare(place, read_now(place), before.digest if before else None)
        if before is None:
            rename_to_new((folder, temporary), (folder, name))
    if before is not None:
        _exchange(place, temporary, before)
    os.fsync(folder)


def _exchange(place: FilePlace, temporary: str, before: FileContent) -> None:
    """Put the new file in the place of the old one, unless someone changed that since it was read."""
    new = name_for_exchange((place.folder, temporary), before.digest)
    target = place.folder, place.name
    try:
        exchanged = put_in_place(new, target, lambda at: _is_still(place, at, before))
    except NotAsExpected as exc:
        raise _changed(place) from exc
    if exchanged:
        os.unlink(new[1], dir_fd=place.folder)


def _is_still(place: FilePlace, at: Place, before: FileContent) -> bool:
    with suppress(ToolError):
        now = read_now(place._replace(name=at[1]))
        return now is not None and now.data == before.data
    return False


def remove(place: FilePlace, expected: str | None, keep: Keep | None = None) -> None:
    """Remove a regular file. Raise FileNotFoundError if it does not exist."""
    before = _present(place, expected)
    if keep is not None:
        keep(place, before, None)
        compare(place, read_now(place), before.digest)
    aside = aside_for((place.folder, place.name), before.digest)
    try:
        move_aside((place.folder, place.name), aside, lambda at: _is_still(place, at, before))
    except NotAsExpected as exc:
        raise _changed(place) from exc
    os.unlink(aside[1], dir_fd=place.folder)
    os.fsync(place.folder)


def move(source: FilePlace, target: FilePlace, expected: str | None, keep: Keep | None = None) -> None:
    """Rename a regular file. Raise FileExistsError if the target exists."""
    before = _present(source, expected)
    with suppress(FileNotFoundError):
        os.stat(target.name, dir_fd=target.folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target.path)
    if keep is not None:
        keep(target, None, before)
        keep(source, before, None)
        compare(source, read_now(source), before.digest)
    rename_to_new((source.folder, source.name), (target.folder, target.name))
    os.fsync(source.folder)
    os.fsync(target.folder)


def _present(place: FilePlace, expected: str | None) -> FileContent:
    before = read_now(place)
    if before is None:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    compare(place, before, expected)
    return before


def read_now(place: FilePlace) -> FileContent | None:
    """Return the current content of a regular file, None if there is no file."""
    if regular_status(place) is None:
        return None
    with suppress(FileNotFoundError), closing_fd(os.open(place.name, READ, dir_fd=place.folder)) as opened:
        status = os.fstat(opened)
        check_regular(status, place.path, LARGEST)
        return FileContent(read_all(opened, place.path, LARGEST), status.st_mode & _SAFE_BITS)
    return None


def compare(place: FilePlace, found_now: FileContent | None, expected: str | None) -> None:
    """Raise ChangedMeanwhile if the content is not the expected one."""
    if expected == ANY:
        return
    found = found_now.digest if found_now else None
    if found == expected:
        return
    if found is None:
        raise ChangedMeanwhile(f"{place.path}: was removed meanwhile; nothing was changed.")
    if expected is None:
        raise ChangedMeanwhile(f"{place.path}: was made by someone else; read it. Nothing was changed.")
    raise _changed(place)


def _changed(place: FilePlace) -> ChangedMeanwhile:
    said = f"{place.path}: was changed by someone else; read it again. Nothing was changed."
    return ChangedMeanwhile(said)


def read_all(opened: int, path: str, cap: int) -> bytes:
    """Return everything that the descriptor gives. Raise ToolError if that is longer than `cap` bytes."""
    blocks: list[bytes] = []
    size = 0
    while block := os.read(opened, _BLOCK):
        blocks.append(block)
        size += len(block)
        if size > cap:
            raise ToolError(f"{path}: grew past {cap} bytes while it was being read.")
    return b"".join(blocks)


def check_regular(status: os.stat_result, path: str, cap: int) -> None:
    """Raise ToolError for anything but a regular file, and for a file larger than `cap` bytes."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise ToolError(
            f"{path}: is {_KINDS.get(kind, 'a device')}, not a regular file.", "reason.not_a_file", path=path
        )
    if status.st_size > cap:
        size = f"{status.st_size} bytes, {cap} at most"
        raise ToolError(
            f"{path}: is too large: {size}. Look at parts of it with a command.",
            "reason.too_large",
            path=path,
        )


def regular_status(place: FilePlace) -> os.stat_result | None:
    """Return the status of a regular file, None if nothing exists. Raise ToolError for anything else."""
    try:
        status = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    check_regular(status, place.path, LARGEST)
    return status


def _give(opened: int, like: os.stat_result) -> None:
    """Give a file the owner and group of another, as far as this user may."""
    try:
        os.fchown(opened, like.st_uid, like.st_gid)
    except OSError as exc:
        # EPERM: only root may change the owner. EINVAL: on a copy, the kernel does not know other groups.
        if exc.errno not in (errno.EPERM, errno.EINVAL):
            raise


def _write_new(at: tuple[int, str], data: bytes, like: os.stat_result | None, mode: int | None = None) -> int:
    """Create the file durably and return its permission bits: `mode`, or those of the replaced file."""
    bits = 0o666 if like is None and mode is None else 0o600
    with closing_fd(os.open(at[1], CREATE, bits, dir_fd=at[0])) as opened:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(opened, rest) :]
        if like is not None:
            new = os.fstat(opened)
            if (new.st_uid, new.st_gid) != (like.st_uid, like.st_gid):
                _give(opened, like)
            mode = like.st_mode if mode is None else mode
        if mode is not None:
            os.fchmod(opened, mode & _SAFE_BITS)
        os.fsync(opened)
        return os.fstat(opened).st_mode & _SAFE_BITS
