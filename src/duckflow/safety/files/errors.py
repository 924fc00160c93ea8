"""Sentences that explain operating system errors to a model."""

import errno
from collections.abc import Generator
from contextlib import contextmanager

from duckflow.domain.errors import ToolError

SENTENCES: dict[int, str] = {
    errno.ENOENT: "does not exist",
    errno.EEXIST: "exists already",
    errno.ENOTDIR: "leads through something that is not a folder",
    errno.EISDIR: "is a folder, not a file",
    errno.ENOTEMPTY: "is a folder that is not empty",
    errno.EXDEV: "leads outside the workspace",
    errno.ELOOP: "is or leads through a link that is not followed; name the file itself",
    errno.ENXIO: "is not a regular file",
    errno.EACCES: "may not be accessed: permission denied by the operating system",
    errno.EPERM: "may not be changed: not permitted by the operating system",
    errno.EROFS: "is on a read-only file system",
    errno.EOVERFLOW: "belongs to another user or group, so it can't be changed on a copy",
    errno.ENOSPC: "could not be written: the disk is full; nothing was changed",
    errno.EDQUOT: "could not be written: the disk quota is used up; nothing was changed",
    errno.EFBIG: "could not be written: it is larger than permitted; nothing was changed",
    errno.EIO: "could not be read or written: the disk reports an error",
    errno.EAGAIN: "kept changing while it was being opened; try again",
    errno.ENAMETOOLONG: "is too long a name",
    errno.EILSEQ: "is not a name this file system accepts",
    errno.EMFILE: "could not be opened: too many open files",
    errno.ETXTBSY: "is being executed",
}

_KEYS: dict[int, str] = {
    errno.ENOENT: "reason.missing",
    errno.EEXIST: "reason.exists",
    errno.EISDIR: "reason.not_a_file",
    errno.ENXIO: "reason.not_a_file",
    errno.ELOOP: "reason.not_a_file",
    errno.EXDEV: "reason.outside",
    errno.EACCES: "reason.denied",
    errno.EPERM: "reason.denied",
    errno.EROFS: "reason.denied",
    errno.ENOSPC: "reason.disk_full",
    errno.EDQUOT: "reason.disk_full",
}
"""Reasons for the user."""


@contextmanager
def as_tool_errors(path: str) -> Generator[None]:
    """Turn OSErrors raised in the block into ToolErrors about `path`."""
    try:
        yield
    except OSError as exc:
        sentence = SENTENCES.get(exc.errno or 0) or f"could not be used: {exc.strerror or exc}"
        key = _KEYS.get(exc.errno or 0, "reason.unusable")
        raise ToolError(f"{path}: {sentence}.", key, path=path) from exc
