"""Replacing a file so that at every moment there is the old content or the new one, whole."""

import hashlib
import os
import re
import secrets
import stat
import time
from contextlib import suppress
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.safety.beneath import rename_to_new

ANY = "any"
"""For `expected`: whatever is there now may be replaced."""

LARGEST = 64_000_000
"""Bytes of a file that is compared, kept or written."""

_TEMPORARY = re.compile(r"\.duckflow-[0-9a-f]{16}\.tmp")
_LEFT_OVER_S = 3600
_SAFE_BITS = 0o777  # new content does not inherit set-user-id
_BLOCK = 1 << 20
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link (name the file itself)",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
}


def is_temporary(name: str) -> bool:
    """Whether a file is one of ours that a killed process may have left."""
    return _TEMPORARY.fullmatch(name) is not None


class Place(NamedTuple):
    """Where a file is or will be: an open folder, the name in it, and the path to speak of."""

    folder: int
    name: str
    path: str


def replace(place: Place, data: bytes, expected: str | None) -> None:
    """Put `data` there; what is there now must hash to `expected` (None: must be missing)."""
    folder, name, path = place
    if len(data) > LARGEST:
        raise ToolError(f"{path}: {len(data)} bytes are too many to write; {LARGEST} at most.")
    before = regular_status(place)
    check_expected(place, expected)
    _sweep(folder)
    temporary = f".duckflow-{secrets.token_hex(8)}.tmp"
    try:
        _write_new(folder, temporary, data, before)
        check_expected(place, expected)
        if expected is None:
            rename_to_new((folder, temporary), (folder, name))
        else:
            os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)


def check_expected(place: Place, expected: str | None) -> None:
    """ToolError where the content is not what it should be."""
    if expected == ANY:
        return
    found = digest(place)
    if found == expected:
        return
    if found is None:
        raise ToolError(f"{place.path}: was removed meanwhile; nothing was changed.")
    if expected is None:
        raise ToolError(f"{place.path}: was made by someone else meanwhile; read it. Nothing was changed.")
    raise ToolError(f"{place.path}: was changed by someone else; read it again. Nothing was changed.")


def digest(place: Place) -> str | None:
    """SHA-256 of a regular file, None where there is none."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        opened = os.open(place.name, flags, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    try:
        check_regular(os.fstat(opened), place.path, LARGEST)
        return hashlib.sha256(read_all(opened, place.path, LARGEST)).hexdigest()
    finally:
        os.close(opened)


def read_all(opened: int, path: str, cap: int) -> bytes:
    """The whole content, unless it turns out to be more than `cap`."""
    blocks: list[bytes] = []
    size = 0
    while block := os.read(opened, _BLOCK):
        blocks.append(block)
        size += len(block)
        if size > cap:
            raise ToolError(f"{path}: grew past {cap} bytes while it was being read.")
    return b"".join(blocks)


def check_regular(status: os.stat_result, path: str, cap: int) -> None:
    """ToolError for what is no regular file, or larger than `cap`."""
    kind = stat.S_IFMT(status.st_mode)
    if kind != stat.S_IFREG:
        raise ToolError(f"{path}: is {_KINDS.get(kind, 'a device')}, not a regular file.")
    if status.st_size > cap:
        raise ToolError(f"{path}: is too large: {status.st_size} bytes, {cap} at most.")


def regular_status(place: Place) -> os.stat_result | None:
    """What is there now, if anything; ToolError where it is no regular file."""
    try:
        status = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    check_regular(status, place.path, LARGEST)
    return status


def _write_new(folder: int, name: str, data: bytes, like: os.stat_result | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    opened = os.open(name, flags, 0o666 if like is None else 0o600, dir_fd=folder)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(opened, rest) :]
        if like is not None:
            _keep_owner(opened, like)
            os.fchmod(opened, like.st_mode & _SAFE_BITS)
        os.fsync(opened)
    finally:
        os.close(opened)


def _keep_owner(opened: int, like: os.stat_result) -> None:
    mine = os.fstat(opened)
    if (mine.st_uid, mine.st_gid) != (like.st_uid, like.st_gid):
        with suppress(PermissionError):  # only root may give files away; then it becomes ours
            os.fchown(opened, like.st_uid, like.st_gid)


def _sweep(folder: int) -> None:
    """Remove what killed writes left here long ago."""
    with os.scandir(folder) as entries:
        names = [entry.name for entry in entries if is_temporary(entry.name)]
    for name in names:
        with suppress(FileNotFoundError):
            if time.time() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime > _LEFT_OVER_S:
                os.unlink(name, dir_fd=folder)
