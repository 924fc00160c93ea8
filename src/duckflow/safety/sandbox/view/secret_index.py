"""Index of secrets in a workspace, by name, content and git, so that commands see them empty (G7)."""

import os
import re

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular
from duckflow.safety.paths import outermost
from duckflow.safety.policy.protected import is_secret_in
from duckflow.safety.sandbox.view.tracked_files import Entries, TrackedFile, TrackedFiles
from duckflow.safety.sandbox.view.visibility import entries_of
from duckflow.safety.sandbox.view.watched_names import WatchedNames

NOT_LOOKED_INTO = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "site-packages", "__pycache__"),
        *(".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".cargo", ".pnpm-store"),
    )
)
"""Folders of published packages or of git: they hold many files, but no secrets of the user's."""

_PUBLIC = lazy_regex(r"\.pub$|^\.env[.-](example|sample|template|dist|defaults)$")
_BY_CONTENT: tuple[tuple[re.Pattern[str], re.Pattern[bytes]], ...] = (
    (re.compile(r"\.(pem|key)$"), re.compile(rb"PRIVATE KEY")),
    (
        re.compile(r"^\.(npmrc|yarnrc.*|pypirc|terraformrc|boto|s3cfg)$"),
        re.compile(rb"(?i)auth|password|token|secret"),
    ),
)
"""Names that are often harmless. The beginning of the file's content decides."""

_READ_OF_IT = 1 << 16

_MOST_IN_A_FOLDER = 1_000
"""Largest number of files in a folder of secrets to check one by one, if git tracks a part of it.

A larger folder is hidden as a whole.
"""


class SecretIndex:
    """Secrets of one workspace. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._names = WatchedNames(root, _wants, self._enters)
        self._tracked = TrackedFiles()

    def find(self) -> dict[str, TrackedFile | None]:
        """Return the absolute paths to hide now, outermost first, with git's entry for tracked ones."""
        self._names.update()
        self._names.touched.clear()
        secrets = outermost(path for path in self._names.paths if _hides(path))
        tracked = self._tracked.find(secrets)
        return {path: tracked.get(path) for secret in secrets for path in self._hidden_in(secret, tracked)}

    def close(self) -> None:
        """Stop watching."""
        self._names.close()

    def _hidden_in(self, secret: str, tracked: Entries) -> tuple[str, ...]:
        """Return the secret itself, or the files to hide in a folder that git tracks in part."""
        in_part = os.path.isdir(secret) and any(path.startswith(f"{secret}/") for path in tracked)
        files = (_files_below(secret) if in_part else None) or (secret,)
        return tuple(path for path in files if not self._is_published(path, tracked.get(path)))

    def _is_published(self, path: str, noted: TrackedFile | None) -> bool:
        return noted is not None and self._tracked.is_published(path, noted)

    def _enters(self, path: str) -> bool:
        covered = path in self._names.paths or os.path.basename(path) in NOT_LOOKED_INTO
        return not covered and not _is_environment(path)


def _wants(folder: str, name: str) -> bool:
    """Return whether the name is typical of secrets, alone or with the name above it."""
    if not is_secret_in(folder.rpartition("/")[2], name) or _PUBLIC.search(name):
        return False
    return not _is_environment(f"{folder}/{name}")


def _is_environment(path: str) -> bool:
    """Return whether a folder is a Python virtual environment, whatever its name."""
    return os.path.exists(f"{path}/pyvenv.cfg")


def _hides(path: str) -> bool:
    """Return whether the path is a secret now. A link is not; its target is checked separately."""
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
