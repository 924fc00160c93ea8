"""Listing what lies in a folder, level by level, following no link, within a count and a depth."""

import os
from collections.abc import Callable, Collection
from itertools import islice
from typing import Literal, NamedTuple

from duckflow.domain.files.caches import ENVIRONMENTS, TOOL_CACHES
from duckflow.safety.descriptors import held
from duckflow.safety.files.atomic import is_temporary

Kind = Literal["file", "folder", "link", "other"]

SKIPPED = TOOL_CACHES | ENVIRONMENTS | {".git", ".hg", ".svn", ".jj"}
"""Folders nobody means when they list or search, unless they name them."""

_READ_AT_MOST = 100_000  # names of one folder


def names_skipped(path: str) -> bool:
    """Whether a path is such a folder or in one: then it was meant."""
    return any(name in SKIPPED for name in path.split("/"))


class ListedEntry(NamedTuple):
    """One thing in a folder. `size` is that of a file. There may be very many, so no pydantic."""

    path: str
    kind: Kind
    size: int = 0


class Listing(NamedTuple):
    """What was found, in order of path; `complete` is False where a cap ended it."""

    entries: tuple[ListedEntry, ...]
    complete: bool = True


def list_tree(
    open_folder: Callable[[str], int],
    start: str,
    *,
    depth: int,
    limit: int,
    each: int | None = None,
    skip: Collection[str] = (),
) -> Listing:
    """The tree below `start`, nearest levels first when `limit` cuts it; names in `skip` are left out.

    `each`: how many names of one folder are looked at; then the list is not complete.
    """
    most = _READ_AT_MOST if each is None else each
    found = _read(open_folder(start), start, skip, most)
    full = len(found) >= most
    level = [entry.path for entry in found if entry.kind == "folder"]
    for _ in range(depth - 1):
        below: list[str] = []
        for folder in level:
            if len(found) > limit:
                break
            entries = _read_if_there(open_folder, folder, skip, most)
            full = full or len(entries) >= most
            found.extend(entries)
            below.extend(entry.path for entry in entries if entry.kind == "folder")
        level = below
    entries = sorted(found[:limit], key=lambda entry: entry.path.split("/"))
    return Listing(entries=tuple(entries), complete=len(found) <= limit and not full)


def _read_if_there(
    open_folder: Callable[[str], int], folder: str, skip: Collection[str], most: int
) -> list[ListedEntry]:
    try:
        return _read(open_folder(folder), folder, skip, most)
    except OSError:
        return []  # removed meanwhile, or closed to us: the rest of the list is still true


def _read(opened: int, folder: str, skip: Collection[str], most: int) -> list[ListedEntry]:
    prefix = "" if folder == "." else folder + "/"
    with held(opened), os.scandir(opened) as scanned:
        wanted = (entry for entry in scanned if entry.name not in skip and not is_temporary(entry.name))
        entries = [_entry(prefix, entry) for entry in islice(wanted, most)]
    return sorted(entries, key=lambda entry: entry.path)


def _entry(prefix: str, entry: "os.DirEntry[str]") -> ListedEntry:
    kind: Kind = "other"
    size = 0
    if entry.is_symlink():
        kind = "link"
    elif entry.is_dir(follow_symlinks=False):
        kind = "folder"
    elif entry.is_file(follow_symlinks=False):
        kind = "file"
        try:
            size = entry.stat(follow_symlinks=False).st_size
        except OSError:
            size = 0  # removed meanwhile
    return ListedEntry(path=prefix + entry.name, kind=kind, size=size)
