"""List a folder level by level, without following links, up to a count and a depth."""

import os
from collections.abc import Callable, Collection
from contextlib import suppress
from itertools import islice
from typing import Literal, NamedTuple

from duckflow.domain.files.caches import ENVIRONMENTS, TOOL_CACHES
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.files.temporary import is_temporary

Kind = Literal["file", "folder", "link", "other"]

SKIPPED = TOOL_CACHES | ENVIRONMENTS | {".git", ".hg", ".svn", ".jj"}
"""Folders left out of listings and searches unless the path names them."""

MOST_IN_A_FOLDER = 100_000
"""Largest number of names that are read of one folder."""


def names_skipped(path: str) -> bool:
    """Return whether a path names or lies in a folder that is skipped by default."""
    return any(name in SKIPPED for name in path.split("/"))


class ListedEntry(NamedTuple):
    """One entry of a folder, with size and time for files. No pydantic, because there may be very many."""

    path: str
    kind: Kind
    size: int = 0
    changed_ns: int = 0


class Listing(NamedTuple):
    """Entries found, sorted by path. `complete` is False if a limit cut the list short."""

    entries: tuple[ListedEntry, ...]
    complete: bool = True


def list_tree(
    open_folder: Callable[[str], int],
    start: str,
    *,
    depth: int,
    limit: int,
    each: int,
    skip: Collection[str] = (),
) -> Listing:
    """List a tree without the names in `skip`. `limit` cuts the deepest levels, `each` limits each folder."""
    found: list[ListedEntry] = []
    full = False
    level = [start]
    for _ in range(depth):
        below: list[str] = []
        for folder in level:
            if len(found) > limit:
                break
            try:
                entries = _read(open_folder(folder), folder, skip, each)
            except OSError:
                if folder == start:
                    raise
                continue  # removed meanwhile or not readable; the rest of the list is still valid
            full = full or len(entries) >= each
            found += entries
            below += (entry.path for entry in entries if entry.kind == "folder")
        level = below
    entries = sorted(found[:limit], key=lambda entry: entry.path.split("/"))
    return Listing(entries=tuple(entries), complete=len(found) <= limit and not full)


def _read(opened: int, folder: str, skip: Collection[str], most: int) -> list[ListedEntry]:
    prefix = "" if folder == "." else folder + "/"
    with closing_fd(opened), os.scandir(opened) as scanned:
        wanted = (entry for entry in scanned if entry.name not in skip and not is_temporary(entry.name))
        entries = [_entry(prefix, entry) for entry in islice(wanted, most)]
    return sorted(entries, key=lambda entry: entry.path)


def _entry(prefix: str, entry: "os.DirEntry[str]") -> ListedEntry:
    path = prefix + entry.name
    if entry.is_symlink():
        return ListedEntry(path, "link")
    if entry.is_dir(follow_symlinks=False):
        return ListedEntry(path, "folder")
    if not entry.is_file(follow_symlinks=False):
        return ListedEntry(path, "other")
    with suppress(OSError):  # removed meanwhile
        status = entry.stat(follow_symlinks=False)
        return ListedEntry(path, "file", status.st_size, status.st_mtime_ns)
    return ListedEntry(path, "file")
