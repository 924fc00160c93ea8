"""System calls that Python does not offer. Standard library only, because the launcher loads this module."""

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
"""AT_FDCWD: the current directory of the process, in place of a folder descriptor."""

NO_MAGICLINKS, NO_SYMLINKS, BENEATH, IN_ROOT = 0x02, 0x04, 0x08, 0x10
"""Flags for `open_at`: rules for following links."""

_PDEATHSIG, _DUMPABLE, _CAPBSET_DROP, _SUBREAPER, _NO_NEW_PRIVS, _CAP_AMBIENT = 1, 4, 24, 36, 38, 47
_AMBIENT_CLEAR_ALL = 4
_OPENAT2 = 437  # same number on every architecture
_TRIES = 64
_CAPABILITY_VERSION = 0x20080522
_LAST_CAPABILITY = 63

_libc = ctypes.CDLL(None, use_errno=True)
# separate handle, because the argument types set below apply to every call made through it
_call = ctypes.CDLL(None, use_errno=True).syscall
_call.argtypes = (ctypes.c_long,) * 5  # plain numbers, because a command makes about 200 calls
_call.restype = ctypes.c_long
_control = _libc.prctl if LINUX else None
if _control:
    _control.argtypes = (ctypes.c_int, *(ctypes.c_ulong,) * 4)


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def c_call(name: str, *arguments: object, what: str | None = None) -> int:
    """Call a function of the C library. Raise OSError, naming `what`, if it fails or does not exist."""
    function = getattr(_libc, name, None)
    return _check(function(*arguments) if function else -errno.ENOSYS, what)


def syscall(number: int, *arguments: int, what: str | None = None) -> int:
    """Make a system call by number, with at most four numbers or addresses. Raise OSError if it fails."""
    return _check(_call(number, *(*arguments, 0, 0, 0, 0)[:4]), what)


def _check(result: int, what: str | None = None) -> int:
    if result < 0:
        code = ctypes.get_errno() if result == -1 else -result
        raise OSError(code, os.strerror(code), what)
    return result


def open_at(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path relative to a folder with openat2; `resolve` sets the rules for following links."""
    how = struct.pack("QQQ", flags, 0, resolve)
    given = folder, os.fsencode(path), how, ctypes.c_size_t(len(how))
    for _ in range(_TRIES):
        try:
            return c_call("syscall", _OPENAT2, *given, what=path)
        except (BlockingIOError, InterruptedError):
            continue  # another process renamed something at the same time
    raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN), path)


def rename_at(source: tuple[int, str], target: tuple[int, str], flags: int) -> None:
    """Rename with renameat2; each side is an open folder and a name in it."""
    (old_folder, old), (new_folder, new) = source, target
    c_call("renameat2", old_folder, os.fsencode(old), new_folder, os.fsencode(new), flags, what=new)


def prctl(option: int, *values: int) -> int:
    """Set an attribute of this process. Raise OSError if that fails."""
    return _check(_control(option, *(*values, 0, 0, 0, 0)[:4]) if _control else -errno.ENOSYS)


def die_with_parent(parent: int) -> None:
    """Let the kernel kill this process when `parent` ends. Exit now if `parent` has already ended."""
    if LINUX:
        prctl(_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)


def fork_child(work: Callable[[], object]) -> None:
    """Fork a child that runs `work` and exits. The kernel kills the child if this process ends first."""
    parent = os.getpid()
    if os.fork():
        return
    try:
        die_with_parent(parent)
        work()
    finally:
        os._exit(0)


def close_memory() -> None:
    """Keep other processes of the same user from reading the memory and environment of this process."""
    if LINUX:
        prctl(_DUMPABLE, 0)


def outlive_parent() -> None:
    """Stop the kernel from killing this process when its parent ends."""
    prctl(_PDEATHSIG, 0)


def adopt_orphans() -> None:
    """Make every descendant that loses its parent a child of this process."""
    if LINUX:
        prctl(_SUBREAPER, 1)


def drop_privileges() -> None:
    """Give up all capabilities, also for programs that this process starts. Root still owns its files."""
    never_gain_privileges()
    drop_capabilities()


def never_gain_privileges() -> None:
    """Prevent programs started from now on from gaining capabilities."""
    prctl(_NO_NEW_PRIVS, 1)
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            prctl(_CAPBSET_DROP, capability)
        except OSError:
            break  # past the last capability of this kernel, or the user has none to drop
    with contextlib.suppress(OSError):  # kernel without ambient capabilities
        prctl(_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)


def drop_capabilities() -> None:
    """Give up all capabilities of this process."""
    header = _Header(_CAPABILITY_VERSION, 0)
    c_call("capset", ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
