"""What happens in a tree of folders, as the kernel tells of it (inotify)."""

import ctypes
import os
import struct
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from duckflow.safety.syscalls import LINUX

MODIFIED, ATTRIBUTES, CREATED, DELETED, MOVED_TO = 0x2, 0x4, 0x100, 0x200, 0x80
APPEARED = CREATED | MOVED_TO
_MOVED_FROM, _MOVE_SELF, _OVERFLOW, _IS_FOLDER, _ONLY_THAT_FOLDER = (
    0x40,
    0x800,
    0x4000,
    0x40000000,
    0x03000000,
)
_ALWAYS = APPEARED | _MOVED_FROM | _MOVE_SELF | _ONLY_THAT_FOLDER
_NON_BLOCKING = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16


class FolderEvent(NamedTuple):
    """Something happened to a name in a folder."""

    folder: str
    name: str
    mask: int

    @property
    def path(self) -> str:
        """Of what it happened to."""
        return f"{self.folder}/{self.name}"

    @property
    def is_folder(self) -> bool:
        """Whether that is a folder."""
        return bool(self.mask & _IS_FOLDER)


class FolderEvents:
    """Watches the folders it is told of. Blocking; one thread at a time.

    `complete`: whether the kernel has told of all that happened in them, at the paths they are known by.
    """

    def __init__(self, also: int = 0) -> None:
        self._wanted = _ALWAYS | also
        self._opened = -1
        self._folders: dict[int, str] = {}
        self.complete = False

    def begin(self) -> None:
        """Watch nothing, anew."""
        self.close()
        self._opened = _libc().inotify_init1(_NON_BLOCKING) if LINUX else -1
        self.complete = self._opened >= 0

    def watch(self, folder: str) -> None:
        """Tell of this folder, too, from now on."""
        if self._opened < 0:
            return
        number = _libc().inotify_add_watch(self._opened, os.fsencode(folder), self._wanted)
        if number < 0:
            self.complete = self.complete and not os.path.isdir(folder)
        else:
            self._folders[number] = folder

    def read(self) -> Iterator[FolderEvent]:
        """What happened since; whoever takes it in may watch further folders meanwhile."""
        while True:
            try:
                data = os.read(self._opened, _BUFFER)
            except BlockingIOError:
                return
            except OSError:
                self.complete = False
                return
            yield from self._parse(data)

    def _parse(self, data: bytes) -> Iterator[FolderEvent]:
        at = 0
        while at < len(data):
            number, mask, _, length = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
            at += _EVENT.size + length
            if mask & (_OVERFLOW | _MOVE_SELF) or (mask & _MOVED_FROM and mask & _IS_FOLDER):
                self.complete = False
            if name and number in self._folders:
                yield FolderEvent(self._folders[number], name, mask)

    def close(self) -> None:
        """Stop watching."""
        if self._opened >= 0:
            os.close(self._opened)
        self._opened = -1
        self._folders.clear()
        self.complete = False


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
