"""Masks: empty files and folders that commands see in place of secrets.

Each secret has its own mask, so that the kernel can report which one a command opened. The mask of a tracked
file has the size and time from git's index, or `git commit -a` would record it. It contains only line ends,
so that `git_internals` recognizes the resulting object if git reads it after all.
"""

import os
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import CREATE, closing_fd
from duckflow.safety.sandbox.view.folder_watch import FolderEvents
from duckflow.safety.sandbox.view.secret_index import MOST_BYTES, TrackedFile

_OPENED = 0x20
_SPECIAL = lazy_regex(r"[\\*?\[\]!# ]")

_Mask = tuple[str, TrackedFile | None, bool]


class Masks:
    """Masks of one session, in a separate folder. Blocking. Several commands can use them at once."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._made: dict[_Mask, str] = {}
        self._hidden: dict[str, str] = {}
        """Path of the hidden file, by the name of its mask."""
        self._events = FolderEvents()
        self._opened: list[str] = []

    def find(self, hidden: Mapping[str, TrackedFile | None], folder: Path) -> dict[str, str]:
        """Return the path of a mask, below `folder`, for each of these absolute paths."""
        with self._lock:
            if folder != self._folder:
                folder.mkdir(mode=0o700, exist_ok=True)
                self._made.clear()
                self._hidden.clear()
                self._events.begin()
                self._events.watch(str(folder), _OPENED)
                self._folder = folder
            return {path: f"{folder}/{self._mask_of(path, noted, folder)}" for path, noted in hidden.items()}

    def opened_since(self, position: int | None = None) -> tuple[tuple[str, ...], int]:
        """Return the secrets opened since opening number `position`, and the number of the last opening."""
        with self._lock:
            self._opened += {self._hidden[name] for _, name, _ in self._events.read() if name in self._hidden}
            position = len(self._opened) if position is None else position
            return tuple(sorted(set(self._opened[position:]))), len(self._opened)

    def close(self) -> None:
        """Stop watching."""
        with self._lock:
            self._events.close()
            self._folder = None

    def _mask_of(self, path: str, noted: TrackedFile | None, folder: Path) -> str:
        wanted = path, noted, os.path.isdir(path)
        if wanted not in self._made:
            name = str(len(self._made))
            _make(folder / name, noted, is_folder=wanted[2])
            self._made[wanted] = name
            self._hidden[name] = path
        return self._made[wanted]


def _make(mask: Path, noted: TrackedFile | None, *, is_folder: bool) -> None:
    if is_folder:
        mask.mkdir(mode=0o555)
    elif noted is None or noted.size > MOST_BYTES:
        mask.touch(mode=0o444)
    else:
        mask.write_bytes(b"\n" * (noted.size or 2))
        mask.chmod(0o444)
        os.utime(mask, ns=(noted.time_ns, noted.time_ns))


def ignore(file: str, workspace: str, paths: Iterable[str]) -> None:
    """Write an ignore file for git. Commands can write to its folder, so no link there is followed."""
    names = (path[len(workspace) :] for path in paths if "\n" not in path)
    text = "".join(_SPECIAL.sub(r"\\\g<0>", name) + "\n" for name in names)
    with suppress(IsADirectoryError):
        Path(file).unlink(missing_ok=True)
        with closing_fd(os.open(file, CREATE, 0o600)) as opened:
            os.write(opened, text.encode("utf-8", "surrogateescape"))
