"""Index of secrets in a workspace, by name, content and git. Commands see these files empty (G7).

Commands may see a file whose content is in git, because they can read it in the repository anyway. That
git's index lists the path is not enough: a command can run `git add -f .env`, which adds the empty file. The
hash in the index must match the content, because only a reader of the file can know that hash.
"""

import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular
from duckflow.safety.files.hard_links import names_of
from duckflow.safety.paths import outermost, stamp_of
from duckflow.safety.policy.protected import is_secret_in
from duckflow.safety.sandbox.view.folder_watch import WatchedNames
from duckflow.safety.sandbox.view.git_settings import tracked_entries
from duckflow.safety.sandbox.view.visibility import entries_of

MOST_BYTES = 1_000_000
"""Size in bytes above which a file is not read and counts as changed."""

_ENTRY = lazy_regex(
    r"[0-7]{6} (?P<id>[0-9a-f]+) \d\t(?P<name>[^\0]+)\0"
    r"\s+ctime: \S+\s+mtime: (?P<seconds>\d+):(?P<fraction>\d+)\s.*?size: (?P<size>\d+)\s[^\n]*\n",
    re.DOTALL,
)
_GITDIR = lazy_regex(rb"gitdir: ([^\n]+)")

NOT_LOOKED_INTO = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "site-packages", "__pycache__"),
        ".venv",
        *(".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".cargo", ".pnpm-store"),
    )
)
"""Folders of git or of published packages. They hold many files, but no secrets of the user."""

_PUBLIC = lazy_regex(r"\.pub$|^\.env[.-](example|sample|template|dist|defaults)$")
_BY_CONTENT: tuple[tuple[re.Pattern[str], re.Pattern[bytes]], ...] = (
    (re.compile(r"\.(pem|key)$"), re.compile(rb"PRIVATE KEY")),
    (
        re.compile(r"^\.(npmrc|yarnrc.*|pypirc|terraformrc|boto|s3cfg)$"),
        re.compile(rb"(?i)auth|password|token|secret"),
    ),
)
"""Names that are often harmless, with a pattern. The file is a secret if its first bytes match."""

_READ_OF_IT = 1 << 16

_MOST_IN_A_FOLDER = 1_000
"""Number of files beyond which a folder of secrets is hidden as a whole, even if git tracks a part of it."""


class TrackedFile(NamedTuple):
    """Entry for a file in git's index."""

    ids: frozenset[str]
    """Hashes of the file's content; several during a merge."""
    time_ns: int
    size: int


Entries = Mapping[str, TrackedFile]


class TrackedFiles:
    """Asks git which files it tracks, and again only after a repository's index has changed."""

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

    def is_published(self, path: str, tracked: TrackedFile | None) -> bool:
        """Return whether the repository holds the file's content, or did so when this was first checked."""
        if tracked is None:
            return False
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
    """Yield git's hashes for a file's content, with its own line ends and with normalized ones."""
    data = read_regular(path, MOST_BYTES + 1)
    if data is None or len(data) > MOST_BYTES:
        return
    for content in {data, data.replace(b"\r\n", b"\n")}:
        blob = b"blob %d\0%s" % (len(content), content)
        yield hashlib.sha1(blob, usedforsecurity=False).hexdigest()
        yield hashlib.sha256(blob).hexdigest()


def _repository_of(path: str) -> str | None:
    above = os.path.dirname(path)
    while above != "/":
        if os.path.lexists(f"{above}/.git"):
            return above
        above = os.path.dirname(above)
    return None


def _git_directory(root: str) -> str:
    """Return the git directory of a work tree. For a worktree or submodule it is elsewhere."""
    path = f"{root}/.git"
    said = _GITDIR.match(read_regular(path, 4_096) or b"")
    return os.path.join(root, os.fsdecode(said[1].strip())) if said else path


class SecretIndex:
    """Secrets of one workspace. Blocking; only for one thread at a time."""

    def __init__(self, root: str, active: str = "") -> None:
        """`active` is the user's active virtual environment, which may have the name of a secret."""
        self._root = root
        self._linked: dict[tuple[int, int, int], tuple[str, ...]] = {}
        self._active = active
        self._names = WatchedNames(root, self._wants, self._enters)
        self._tracked = TrackedFiles()

    def find(self) -> dict[str, TrackedFile | None]:
        """Return the absolute paths to hide now, each with git's entry if git tracks it, outermost first."""
        self._names.update()
        secrets = outermost(path for path in self._names.paths if _hides(path))
        secrets = outermost((*secrets, *self._other_names(secrets)))
        tracked = self._tracked.find(secrets)
        return {path: tracked.get(path) for secret in secrets for path in self._hidden_in(secret, tracked)}

    def close(self) -> None:
        """Stop watching."""
        self._names.close()

    def _other_names(self, secrets: Iterable[str]) -> Iterator[str]:
        """Yield the other names that secrets, and files in folders of secrets, have by hard links."""
        for secret in secrets:
            for path in (_files_below(secret) or ()) if os.path.isdir(secret) else (secret,):
                with suppress(OSError):
                    status = os.lstat(path)
                    if stat.S_ISREG(status.st_mode) and status.st_nlink > 1:
                        yield from self._names_of(status)

    def _names_of(self, status: os.stat_result) -> tuple[str, ...]:
        known = status.st_ino, status.st_dev, status.st_ctime_ns  # a new name changes the time
        if known not in self._linked:
            found = names_of(self._root, status.st_ino, status.st_dev)
            self._linked[known] = tuple(f"{self._root}/{name}" for name in found)
        return self._linked[known]

    def _hidden_in(self, secret: str, tracked: Entries) -> tuple[str, ...]:
        """Return the secret itself, or the files to hide in it if it is a folder that git tracks in part."""
        in_part = os.path.isdir(secret) and any(path.startswith(f"{secret}/") for path in tracked)
        files = (_files_below(secret) if in_part else None) or (secret,)
        return tuple(path for path in files if not self._tracked.is_published(path, tracked.get(path)))

    def _enters(self, path: str) -> bool:
        covered = path in self._names.paths or os.path.basename(path) in NOT_LOOKED_INTO
        return not covered and path != self._active

    def _wants(self, folder: str, name: str) -> bool:
        if not is_secret_in(folder.rpartition("/")[2], name) or _PUBLIC.search(name):
            return False
        return f"{folder}/{name}" != self._active


def _hides(path: str) -> bool:
    """Return whether the path is a secret now. A link is never one; its target is checked separately."""
    if os.path.islink(path) or not os.path.exists(path):
        return False
    name = os.path.basename(path).lower()
    for names, content in _BY_CONTENT:
        if names.search(name) and os.path.isfile(path):
            return _holds(path, content)
    return True


def _files_below(folder: str) -> tuple[str, ...] | None:
    """Return the files in a folder and its subfolders, None if there are too many to check each."""
    found: list[str] = []
    waiting = [folder]
    while waiting:
        for entry in entries_of(waiting.pop()):
            if entry.is_dir(follow_symlinks=False):
                waiting.append(entry.path)
            elif not entry.is_symlink():
                found.append(entry.path)
        if len(found) + len(waiting) > _MOST_IN_A_FOLDER:
            return None
    return tuple(found)


def _holds(path: str, content: re.Pattern[bytes]) -> bool:
    beginning = read_regular(path, _READ_OF_IT)
    return beginning is None or content.search(beginning) is not None
