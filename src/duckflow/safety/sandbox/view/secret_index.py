"""Where secrets lie in a workspace, so that commands see them empty (SPEC G7): by name, content and git."""

import os
import re
from contextlib import suppress

from duckflow.domain.patterns import late
from duckflow.safety.descriptors import READ, held
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
"""What others published, or git keeps: no secrets of the user's, and many files."""

_PUBLIC = late(r"\.pub$|^\.env[.-](example|sample|template|dist|defaults)$")
_BY_CONTENT: tuple[tuple[re.Pattern[str], re.Pattern[bytes]], ...] = (
    (re.compile(r"\.(pem|key)$"), re.compile(rb"PRIVATE KEY")),
    (
        re.compile(r"^\.(npmrc|yarnrc.*|pypirc|terraformrc|boto|s3cfg)$"),
        re.compile(rb"(?i)auth|password|token|secret"),
    ),
)
"""Names that are as often harmless: what is in the file decides, as far as its beginning tells."""

_READ_OF_IT = 1 << 16

_MOST_IN_A_FOLDER = 1_000
"""Files in a folder of secrets that git tracks in part; one with more is hidden as a whole."""


class SecretIndex:
    """The secrets of one workspace. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._names = WatchedNames(root, _wants, self._enters)
        self._tracked = TrackedFiles()

    def find(self) -> dict[str, TrackedFile | None]:
        """The absolute paths to hide now, outermost first, with what git has noted of those it tracks."""
        self._names.update()
        self._names.touched.clear()
        secrets = outermost(path for path in self._names.paths if _hides(path))
        tracked = self._tracked.find(secrets)
        return {path: tracked.get(path) for secret in secrets for path in self._hidden_in(secret, tracked)}

    def close(self) -> None:
        """Stop watching."""
        self._names.close()

    def _hidden_in(self, secret: str, tracked: Entries) -> tuple[str, ...]:
        """The secret itself, or the files to hide in a folder of which git tracks a part."""
        in_part = os.path.isdir(secret) and any(path.startswith(f"{secret}/") for path in tracked)
        files = (_files_below(secret) if in_part else None) or (secret,)
        return tuple(path for path in files if not self._is_published(path, tracked.get(path)))

    def _is_published(self, path: str, noted: TrackedFile | None) -> bool:
        return noted is not None and self._tracked.is_published(path, noted)

    def _enters(self, path: str) -> bool:
        covered = path in self._names.paths or os.path.basename(path) in NOT_LOOKED_INTO
        return not covered and not _is_environment(path)


def _wants(folder: str, name: str) -> bool:
    """Whether it is a name that secrets have, by itself or with the one above it."""
    if not is_secret_in(folder.rpartition("/")[2], name) or _PUBLIC.search(name):
        return False
    return not _is_environment(f"{folder}/{name}")


def _is_environment(path: str) -> bool:
    """Whether a folder is a virtual environment of Python, whatever it is called."""
    return os.path.exists(f"{path}/pyvenv.cfg")


def _hides(path: str) -> bool:
    """Whether what is there now is secret; a link is not, what it leads to is looked at by itself."""
    if os.path.islink(path) or not os.path.exists(path):
        return False
    name = os.path.basename(path).lower()
    for names, content in _BY_CONTENT:
        if names.search(name) and os.path.isfile(path):
            return _holds(path, content)
    return True


def _files_below(folder: str) -> tuple[str, ...] | None:
    """The files in a folder and its folders; None if there are too many to look at each."""
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
    with suppress(OSError), held(os.open(path, READ)) as opened:
        return content.search(os.read(opened, _READ_OF_IT)) is not None
    return True
