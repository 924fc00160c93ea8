"""Files that git tracks. Their content can be read in the repository anyway, so commands see them (G7).

A path in the index proves nothing, because a command can put one there (`git add -f .env` adds the mask, and
the index is applied). The content proves it: only a reader of the file can name its hash.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular
from duckflow.safety.paths import stamp_of
from duckflow.safety.sandbox.view.git_settings import tracked_entries

MOST_BYTES = 1_000_000
"""Size above which a file is never read and counts as changed."""

_ENTRY = lazy_regex(
    r"[0-7]{6} (?P<id>[0-9a-f]+) \d\t(?P<name>[^\0]+)\0"
    r"\s+ctime: \S+\s+mtime: (?P<seconds>\d+):(?P<fraction>\d+)\s.*?size: (?P<size>\d+)\s[^\n]*\n",
    re.DOTALL,
)
_GITDIR = lazy_regex(rb"gitdir: ([^\n]+)")


class TrackedFile(NamedTuple):
    """Index entry of git for a file."""

    ids: frozenset[str]
    """Hashes of its content; several during a merge."""
    time_ns: int
    size: int


Entries = Mapping[str, TrackedFile]


class TrackedFiles:
    """Asks the repositories of files, and again only after their index has changed."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[object, Entries]] = {}
        self._digests: dict[str, tuple[object, frozenset[str]]] = {}
        self._published: set[str] = set()

    def find(self, paths: Iterable[str]) -> dict[str, TrackedFile]:
        """Return index entries for the tracked files at or below these absolute paths."""
        by_repository: dict[str, list[str]] = {}
        for path in paths:
            if root := _repository_of(path):
                by_repository.setdefault(root, []).append(path)
        found: dict[str, TrackedFile] = {}
        for root, asked in by_repository.items():
            found |= self._ask(root, tuple(sorted(asked)))
        return found

    def is_published(self, path: str, tracked: TrackedFile) -> bool:
        """Return whether a repository holds this content, or did so when this was first checked."""
        if path not in self._published and self._ids_of(path) & tracked.ids:
            self._published.add(path)
        return path in self._published

    def _ask(self, root: str, paths: tuple[str, ...]) -> Entries:
        known = (paths, stamp_of(f"{_git_directory(root)}/index"))
        if known[1] is None or self._known.get(root, ((), {}))[0] != known:
            said = tracked_entries(root, [path[len(root) + 1 :] for path in paths])
            self._known[root] = known, _entries(root, said)
        return self._known[root][1]

    def _ids_of(self, path: str) -> frozenset[str]:
        stamp = stamp_of(path)
        if stamp is None or self._digests.get(path, (None,))[0] != stamp:
            self._digests[path] = stamp, frozenset(_ids(path))
        return self._digests[path][1]


def _entries(root: str, said: str) -> Entries:
    found: dict[str, TrackedFile] = {}
    for entry in _ENTRY.finditer(said):
        path = f"{root}/{entry['name']}"
        others = found[path].ids if path in found else frozenset[str]()
        when = int(entry["seconds"]) * 1_000_000_000 + int(entry["fraction"])
        found[path] = TrackedFile(others | {str(entry["id"])}, when, int(entry["size"]))
    return found


def _ids(path: str) -> Iterator[str]:
    """Yield git's hashes for the content of a file, with its own line ends and with normalized ones."""
    data = read_regular(path, MOST_BYTES + 1)
    if data is None or len(data) > MOST_BYTES:
        return
    for content in {data, data.replace(b"\r\n", b"\n")}:
        blob = b"blob %d\0%s" % (len(content), content)
        yield hashlib.sha1(blob, usedforsecurity=False).hexdigest()
        yield hashlib.sha256(blob).hexdigest()


def _repository_of(path: str) -> str | None:
    """Return the folder of the nearest repository above a path."""
    above = os.path.dirname(path)
    while above != "/":
        if os.path.lexists(f"{above}/.git"):
            return above
        above = os.path.dirname(above)
    return None


def _git_directory(root: str) -> str:
    """Return the git directory, which for a worktree or submodule is elsewhere."""
    path = f"{root}/.git"
    said = _GITDIR.match(read_regular(path, 4_096) or b"")
    return os.path.join(root, os.fsdecode(said[1].strip())) if said else path
