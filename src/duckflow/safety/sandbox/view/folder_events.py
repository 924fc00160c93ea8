"""Events in folders, as reported by the kernel (inotify)."""

import os
import struct
from collections.abc import Iterator
from contextlib import suppress

from duckflow.safety.syscalls import LINUX, c_call

_MOVED_FROM, _MOVE_SELF, _OVERFLOW, IS_FOLDER = 0x40, 0x800, 0x4000, 0x40000000
_NON_BLOCKING = os.O_NONBLOCK | os.O_CLOEXEC
_EVENT = struct.Struct("iIII")
_BUFFER = 1 << 16


class FolderEvents:
    """Watches folders, but not the folders below them. Blocking; one thread at a time."""

    def __init__(self) -> None:
        self.complete = False
        """True if the kernel has reported everything so far, at paths that are known."""
        self._opened = -1
        self._folders: dict[int, str] = {}

    def begin(self) -> None:
        """Drop all watches and get ready for new ones."""
        self.close()
        with suppress(OSError):
            self._opened = c_call("inotify_init1", _NON_BLOCKING) if LINUX else -1
        self.complete = self._opened >= 0

    def watch(self, folder: str, mask: int) -> None:
        """Report these events in a folder from now on."""
        try:
            number = c_call("inotify_add_watch", self._opened, os.fsencode(folder), mask)
        except OSError:
            self.complete = self.complete and not os.path.isdir(folder)
        else:
            self._folders[number] = folder

    def read(self) -> Iterator[tuple[str, str, int]]:
        """Yield the events since the last call: the folder, the name in it, and the event mask."""
        while True:
            try:
                data = os.read(self._opened, _BUFFER)
            except BlockingIOError:
                return
            except OSError:
                self.complete = False
                return
            at = 0
            while at < len(data):
                number, mask, _, length = _EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0"))
                at += _EVENT.size + length
                if mask & (_OVERFLOW | _MOVE_SELF) or (mask & _MOVED_FROM and mask & IS_FOLDER):
                    self.complete = False
                if name and number in self._folders:
                    yield self._folders[number], name, mask

    def close(self) -> None:
        """Stop watching."""
        if self._opened >= 0:
            os.close(self._opened)
        self._opened = -1
        self._folders.clear()
        self.complete = False
