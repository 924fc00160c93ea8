"""Where secrets lie in a workspace, so that commands see them empty (SPEC G7): by name and content.

The folder is looked at once; after that the kernel tells of every name that appears in it, so that knowing
costs the same however large it is. If the kernel can't tell of all of it, every command looks again: never
less is hidden.
"""

import fnmatch
import os
import re
from contextlib import suppress
from functools import cache, lru_cache

from duckflow.domain.patterns import late
from duckflow.safety.paths import fold
from duckflow.safety.policy.protected import is_secret, protected_kinds
from duckflow.safety.sandbox.view.inotify import APPEARED, FolderEvents

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


class SecretIndex:
    """The secrets of one workspace. Blocking; one thread at a time."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._events = FolderEvents()
        self._named: set[str] = set()

    def find(self) -> tuple[str, ...]:
        """The absolute paths of what is to be hidden now, outermost first."""
        self._catch_up()
        if not self._events.complete:
            self._named.clear()
            self._events.begin()
            self._look(self._root)
        hidden = sorted(path for path in self._named if _hides(path))
        return tuple(one for one in hidden if not any(one.startswith(f"{other}/") for other in hidden))

    def close(self) -> None:
        """Stop watching."""
        self._events.close()

    def _look(self, start: str) -> None:
        """Note names below a folder; each is watched before it is read, so nothing slips in between."""
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            self._events.watch(folder)
            with suppress(OSError), os.scandir(folder) as entries:
                for entry in entries:
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if self._note(folder, entry.name) or not is_folder:
                        continue
                    if entry.name not in NOT_LOOKED_INTO and not _is_environment(entry.path):
                        waiting.append(entry.path)

    def _note(self, folder: str, name: str) -> bool:
        """Note a name if it is one that secrets have; True if all below it is covered."""
        path, above = f"{folder}/{name}", os.path.basename(folder)
        if not _may_be_secret(name) and not _is_secret_folder(above):
            return False
        if not is_secret(name) and not is_secret(f"{above}/{name}"):
            return False
        if _PUBLIC.search(name) or _is_environment(path):
            return False
        self._named.add(path)
        return True

    def _catch_up(self) -> None:
        """Take in what happened since."""
        for event in self._events.read():
            if not event.mask & APPEARED or self._note(event.folder, event.name) or not event.is_folder:
                continue
            if event.name not in NOT_LOOKED_INTO and not _is_environment(event.path):
                self._look(event.path)


@cache
def _rough() -> re.Pattern[str]:
    """All names at once, for the many that are none of them."""
    patterns = protected_kinds()["keys_and_secrets"].patterns
    parts = [pattern.rpartition("/")[2] for pattern in patterns]
    return re.compile("|".join(fnmatch.translate(part) for part in parts))


def _may_be_secret(name: str) -> bool:
    """Whether secrets may have names that end so: a look that costs little, for the many that have not."""
    return _rough().match(name.lower() if name.isascii() else fold(name)) is not None


_is_secret_folder = lru_cache(maxsize=1024)(is_secret)


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


def _holds(path: str, content: re.Pattern[bytes]) -> bool:
    try:
        opened = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return True
    try:
        return content.search(os.read(opened, _READ_OF_IT)) is not None
    except OSError:
        return True
    finally:
        os.close(opened)
