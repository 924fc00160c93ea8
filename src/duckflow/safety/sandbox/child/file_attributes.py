"""Changes to permissions, owners and times of files, made for the command because Landlock ignores them.

The kernel holds such a call. This process then makes the change, not the command, because the path could
lead to another file after the check. Only the user's own files in writable folders are changed. Standard
library only.
"""

import errno
import os
import re
import stat
import struct
from collections.abc import Callable, Iterable

from duckflow.safety.descriptors import closing_fd
from duckflow.safety.sandbox.child.notifications import HeldCall, take
from duckflow.safety.sandbox.child.seccomp import attribute_call
from duckflow.safety.syscalls import NO_MAGICLINKS, c_call, open_at

_NO_FOLLOW, _EMPTY_PATH = 0x100, 0x1000
_LOOK = os.O_PATH | os.O_CLOEXEC
_OF_A_PROCESS = re.compile(r"/proc/(?:self|thread-self|(\d+))/fd/(\d+)|/dev/fd/(\d+)")
_AS_IT_IS = 0xFFFFFFFF
_NOBODY = -1


class FileAttributes:
    """Answers attribute calls of one command. `places` are files and folders that the command may write."""

    def __init__(self, listener: int, places: Iterable[str]) -> None:
        self.listener = listener
        self._places = tuple(places)

    def answer(self) -> None:
        """Receive one call, and make it or refuse it."""
        call = take(self.listener)
        if call is not None:
            try:
                self._make(call)
            except OSError as exc:
                call.answer(exc.errno or errno.EPERM)
            else:
                call.answer(0)

    def _make(self, call: HeldCall) -> None:
        name, base, path, flags, values = attribute_call(call.number, call.words)
        if name == "own_owner":
            name, flags = "owner", _NO_FOLLOW
        with closing_fd(_open(call, base, path, flags)) as opened:
            found = os.stat(opened)
            call.check()
            where = os.readlink(f"/proc/self/fd/{opened}")
            if not where.startswith("/") or where.startswith("/memfd:"):
                return  # a pipe or the like, which only the command can use
            inside = any(f"{where}/".startswith(f"{place}/") for place in self._places)
            if not inside or found.st_uid != os.geteuid():
                raise PermissionError(errno.EPERM, name)
            _CHANGES[name](call, opened, found, values)


def _open(call: HeldCall, base: int, address: int, flags: int) -> int:
    """Open the file that a call names, as the calling process sees it. The file can only be inspected."""
    path = call.text(address) if address else ""
    if not path:
        if address and not flags & _EMPTY_PATH:
            raise FileNotFoundError(errno.ENOENT, "")
        return os.open(call.place(base), _LOOK)
    if found := _OF_A_PROCESS.fullmatch(path):
        return os.open(f"/proc/{found[1] or call.process}/fd/{found[2] or found[3]}", _LOOK)
    with closing_fd(_open(call, base, 0, 0) if not path.startswith("/") else os.open("/", _LOOK)) as above:
        last = os.O_NOFOLLOW if flags & _NO_FOLLOW else 0
        return open_at(above, path, _LOOK | last, NO_MAGICLINKS)


def _set_mode(_call: HeldCall, opened: int, found: os.stat_result, values: list[int]) -> None:
    mode = values[0] & 0o7777
    if mode & 0o6000 & ~found.st_mode and not stat.S_ISDIR(found.st_mode):
        raise PermissionError(errno.EPERM, "set-id")
    os.chmod(f"/proc/self/fd/{opened}", mode)


def _set_owner(_call: HeldCall, opened: int, found: os.stat_result, values: list[int]) -> None:
    user, group = (value & _AS_IT_IS for value in values)
    own = (found.st_gid, os.getegid(), *os.getgroups(), _AS_IT_IS)
    if user not in (found.st_uid, _AS_IT_IS) or group not in own:
        raise PermissionError(errno.EPERM, "owner")
    if group not in (found.st_gid, _AS_IT_IS):
        os.chown(f"/proc/self/fd/{opened}", _NOBODY, group)


def _set_times(call: HeldCall, opened: int, _found: os.stat_result, values: list[int]) -> None:
    times = call.read(values[0], 32) if values[0] else None
    _utimensat(opened, times)


def _set_old_times(call: HeldCall, opened: int, _found: os.stat_result, values: list[int]) -> None:
    """Set file times that are given in seconds, or in seconds and microseconds."""
    times = None
    if values[0] and values[1]:
        seen, more_seen, changed, more = struct.unpack("4q", call.read(values[0], 32))
        times = struct.pack("4q", seen, more_seen * 1000, changed, more * 1000)
    elif values[0]:
        seen, changed = struct.unpack("2q", call.read(values[0], 16))
        times = struct.pack("4q", seen, 0, changed, 0)
    _utimensat(opened, times)


def _utimensat(opened: int, times: bytes | None) -> None:
    c_call("utimensat", opened, b"", times, _EMPTY_PATH, what="times")


_CHANGES: dict[str, Callable[[HeldCall, int, os.stat_result, list[int]], None]] = {
    "mode": _set_mode,
    "owner": _set_owner,
    "times": _set_times,
    "old_times": _set_old_times,
}
