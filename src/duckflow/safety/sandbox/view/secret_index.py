"""Where secrets lie in a workspace, so that commands see them empty (SPEC G7): by name and content.

The folder is looked at once; after that the kernel tells of every name that appears in it, so that knowing
costs the same however large it is. If the kernel can't tell of all of it, every command looks again: never
less is hidden.
"""

import ctypes
import fnmatch
import os
import re
import struct
from contextlib import suppress
from functools import cache, lru_cache

from duckflow.domain.patterns import late
from duckflow.safety.paths import fold
from duckflow.safety.policy.protected import is_secret, protected_kinds
from duckflow.safety.sandbox.child.syscalls import LINUX

NOT_LOOKED_INTO = frozenset(
    (
        *(".git", ".hg", ".svn", ".jj", "node_modules", "bower_components", "site-packages", "__pycache__"),
        *(".tox", ".nox", ".mypy_cache", ".pytest_cache", ".ruff_cache", ".gradle", ".cargo", ".pnpm-store"),
    )
)
"""What others published, or git keeps: no secrets of the user's, and many files."""

CREATED, MOVED_FROM, MOVED_TO, MOVE_SELF = 0x100, 0x40, 0x80, 0x800
OVERFLOW, IS_FOLDER, ONLY_THAT_FOLDER = 0x4000, 0x40000000, 0x03000000
_WATCHED = CREATED | MOVED_FROM | MOVED_TO | MOVE_SELF | ONLY_THAT_FOLDER
NON_BLOCKING = os.O_NONBLOCK | os.O_CLOEXEC
EVENT = struct.Struct("iIII")
BUFFER = 1 << 16

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
        self._watching = -1
        self._folders: dict[int, str] = {}
        self._named: set[str] = set()
        self._complete = False

    def find(self) -> tuple[str, ...]:
        """The absolute paths of what is to be hidden now, outermost first."""
        if not self._complete or not self._catch_up():
            self._look_at_all()
        hidden = sorted(path for path in self._named if _hides(path))
        return tuple(one for one in hidden if not any(one.startswith(f"{other}/") for other in hidden))

    def close(self) -> None:
        """Stop watching."""
        if self._watching >= 0:
            os.close(self._watching)
            self._watching = -1
        self._complete = False

    def _look_at_all(self) -> None:
        self.close()
        self._folders.clear()
        self._named.clear()
        self._watching = _libc().inotify_init1(NON_BLOCKING) if LINUX else -1
        self._complete = self._watching >= 0
        self._look(self._root)

    def _look(self, start: str) -> None:
        """Note names below a folder; each is watched before it is read, so nothing slips in between."""
        waiting = [start]
        while waiting:
            folder = waiting.pop()
            self._watch(folder)
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

    def _watch(self, folder: str) -> None:
        if self._watching < 0:
            return
        number = _libc().inotify_add_watch(self._watching, os.fsencode(folder), _WATCHED)
        if number < 0:
            self._complete = self._complete and not os.path.isdir(folder)
        else:
            self._folders[number] = folder

    def _catch_up(self) -> bool:
        """Take in what happened since; False if all has to be looked at again."""
        while True:
            try:
                data = os.read(self._watching, BUFFER)
            except BlockingIOError:
                return self._complete
            except OSError:
                return False
            at = 0
            while at < len(data):
                number, mask, _, length = EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + EVENT.size : at + EVENT.size + length].rstrip(b"\0"))
                at += EVENT.size + length
                if mask & (OVERFLOW | MOVE_SELF) or (mask & MOVED_FROM and mask & IS_FOLDER):
                    return False
                if name and number in self._folders and mask & (CREATED | MOVED_TO):
                    self._take_in(self._folders[number], name, is_folder=bool(mask & IS_FOLDER))

    def _take_in(self, folder: str, name: str, *, is_folder: bool) -> None:
        path = f"{folder}/{name}"
        covered = self._note(folder, name)
        if is_folder and not covered and name not in NOT_LOOKED_INTO and not _is_environment(path):
            self._look(path)


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


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
