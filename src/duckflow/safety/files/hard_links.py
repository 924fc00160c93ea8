"""All names of a file in a folder. A hard link gives the content of a protected file another name."""

import os
from collections.abc import Iterator

_SKIPPED = frozenset(("node_modules", "site-packages", "bower_components", ".pnpm-store"))
"""Folders of packages, whose installers link files from a cache."""

_MOST_FOLDERS = 20_000


def names_of(root: str, inode: int, device: int) -> list[str]:
    """Return the paths of a file below `root`, relative to it. Folders of packages are not searched."""
    return [path.removeprefix(f"{root}/") for path in _search(root, inode, device)]


def _search(root: str, inode: int, device: int) -> Iterator[str]:
    waiting, seen = [root], 0
    while waiting and seen < _MOST_FOLDERS:
        seen += 1
        try:
            entries = os.scandir(waiting.pop())
        except OSError:
            continue
        with entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in _SKIPPED:
                        waiting.append(entry.path)
                elif entry.inode() == inode and _device(entry) == device:
                    yield entry.path


def _device(entry: "os.DirEntry[str]") -> int | None:
    try:
        return entry.stat(follow_symlinks=False).st_dev
    except OSError:
        return None
