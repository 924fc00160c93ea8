"""The few calls of the system that Python has no name for. Standard library only: the launcher loads it."""

import contextlib
import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Callable

LINUX = sys.platform.startswith("linux")

HERE = 0xFFFFFF9C
"""In the place of a folder: where the process is."""

NO_MAGICLINKS, BENEATH, IN_ROOT = 0x02, 0x08, 0x10
"""How `open_at` follows links."""

_PDEATHSIG, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 24, 36, 38, 47
_AMBIENT_CLEAR_ALL = 4
_OPENAT2 = 437  # the same number on every architecture
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
_call = ctypes.CDLL(None, use_errno=True).syscall  # of its own: what is said here holds for no other call
_call.argtypes = (ctypes.c_long,) * 5  # plain numbers: two hundred calls before a command should cost little
_call.restype = ctypes.c_long
_control = _libc.prctl if LINUX else None
if _control:
    _control.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def c_call(name: str, *arguments: object, what: str | None = None) -> int:
    """A function of the C library; OSError, about `what`, where it fails or is missing."""
    function = getattr(_libc, name, None)
    return _check(function(*arguments) if function else -errno.ENOSYS, what)


def syscall(number: int, *arguments: int, what: str | None = None) -> int:
    """A system call by its number, with at most four numbers or addresses; OSError where it fails."""
    return _check(_call(number, *(*arguments, 0, 0, 0, 0)[:4]), what)


def _check(result: int, what: str | None = None) -> int:
    if result < 0:
        code = ctypes.get_errno() if result == -1 else -result
        raise OSError(code, os.strerror(code), what)
    return result


def open_at(folder: int, path: str, flags: int, resolve: int) -> int:
    """openat2: a path below or beside a folder, with rules for how links are followed."""
    how = struct.pack("QQQ", flags, 0, resolve)
    return c_call("syscall", _OPENAT2, folder, os.fsencode(path), how, ctypes.c_size_t(len(how)), what=path)


def rename_at(source: tuple[int, str], target: tuple[int, str], flags: int) -> None:
    """renameat2: each side is a folder and a name in it."""
    (old_folder, old), (new_folder, new) = source, target
    c_call("renameat2", old_folder, os.fsencode(old), new_folder, os.fsencode(new), flags, what=new)


def prctl(option: int, *values: int) -> int:
    """Set something for this process; OSError where it fails."""
    return _check(_control(option, *(*values, 0, 0, 0, 0)[:4]) if _control else -errno.ENOSYS)


def die_with_parent(parent: int) -> None:
    """Be killed when `parent` ends, also when it has ended already."""
    if LINUX:
        prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def fork_child(work: Callable[[], object]) -> None:
    """Start a child that does this and ends; it is killed if this process ends before."""
    parent = os.getpid()
    if os.fork():
        return
    try:
        die_with_parent(parent)
        work()
    finally:
        os._exit(0)


def outlive_parent() -> None:
    """No longer be killed when the parent ends."""
    prctl(_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """From now on every descendant that loses its parent becomes a child of this process."""
    if LINUX:
        prctl(_SUBREAPER, 1)


def drop_privileges() -> None:
    """No capability, now or through any program: root becomes a user that owns root's files."""
    never_gain_privileges()
    drop_capabilities()


def never_gain_privileges() -> None:
    """No capability through any program from now on."""
    prctl(_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(_CAPBSET_DROP, capability)
        except OSError:
            break  # the last one there is, or a user who has none to drop
    with contextlib.suppress(OSError):  # a kernel without ambient capabilities
        prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)


def drop_capabilities() -> None:
    """No capability from now on."""
    header = _Header(_CAPABILITY_VERSION, 0)
    c_call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
