"""Sandbox of plain namespaces: the same mounts as with bubblewrap, made by direct system calls.

Everything is mounted below a new root before the old root is unmounted. Then all capabilities are dropped.
The command is a child of the first process of a new process namespace: when that process ends, the kernel
ends all processes of the command. Standard library only.
the command ends. Standard library only.
"""

import contextlib
import os
import signal
from typing import Any, NoReturn

from duckflow.safety.sandbox.child.overlay import (
    BIND,
    DETACH,
    NEW_MOUNTS,
    NEW_NETWORK,
    NEW_USERS,
    NO_DEVICES,
    NO_SET_ID,
    PRIVATE,
    READ_ONLY,
    RECURSIVE,
    bring_up_loopback,
    mount,
    set_read_only,
    unshare,
)
from duckflow.safety.sandbox.child.process_tree import exit_code
from duckflow.safety.syscalls import c_call, prctl

_NEW_GROUPS, _NEW_NAMES, _NEW_IPC, _NEW_PROCESSES = 0x02000000, 0x04000000, 0x08000000, 0x20000000
_NO_PROGRAMS = 8
_PDEATHSIG, _DUMPABLE = 1, 4
_PIVOT = {"x86_64": 155, "aarch64": 41}
_MASKS = ("empty_folder", "empty_file")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty")
_DEVICE_LINKS = {
    "fd": "/proc/self/fd",
    "stdin": "/proc/self/fd/0",
    "stdout": "/proc/self/fd/1",
    "stderr": "/proc/self/fd/2",
    "ptmx": "pts/ptmx",
}


def separate(*, own_network: bool, own_users: bool) -> None:
    """Enter new namespaces. The next child of this process becomes their first process."""
    more = (NEW_USERS if own_users else 0) | (NEW_NETWORK if own_network else 0)
    unshare(NEW_MOUNTS | _NEW_PROCESSES | _NEW_IPC | _NEW_NAMES | _NEW_GROUPS | more)
    if own_network:
        bring_up_loopback()


def make_root(root: str, temporary: str) -> None:
    """Mount a new root at the empty folder `root`, and fill it with what every command gets."""
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    mount("tmpfs", root, "tmpfs", NO_SET_ID | NO_DEVICES, "size=1m,mode=755")
    _make_devices(root, temporary)
    os.mkdir(f"{root}/proc")


def mount_processes(root: str) -> None:
    """Mount /proc with the processes of this namespace."""
    # Read-only, because root could otherwise change kernel settings below /proc/sys without any capability.
    mount("proc", f"{root}/proc", "proc", NO_SET_ID | NO_DEVICES | _NO_PROGRAMS)
    set_read_only(f"{root}/proc", flags=0)


def make_mounts(root: str, temporary: str, mounts: list[dict[str, Any]]) -> None:
    """Add the mounts that a command sees."""
    for step in mounts:
        _make(step, root, temporary)


def close_root(root: str) -> None:
    """Make the root read-only, so that nothing can be added."""
    for path in ("/dev", ""):
        set_read_only(f"{root}{path}", flags=0)


def count_valid(root: str, temporary: str, mounts: list[dict[str, Any]]) -> int:
    """Count the leading mounts that are still correct; their sources or targets may have been replaced."""
    wrong = (number for number, step in enumerate(mounts) if not _shows(step, root, temporary))
    return next(wrong, len(mounts))


def _shows(step: dict[str, Any], root: str, temporary: str) -> bool:
    kind, target = step["kind"], f"{root}{step['target']}"
    shown = _identity(target)
    if kind == "link" or (kind in _MASKS and shown is None):
        return True
    if kind == "empty_folder" and not step["source"]:
        return shown is not None and shown[0] != (_identity(os.path.dirname(target)) or (0,))[0]
    return shown == _identity(step["source"] or f"{temporary}/empty")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def move_into(root: str) -> None:
    """Make `root` the root folder and unmount everything else."""
    os.chdir(root)
    c_call("syscall", _PIVOT[os.uname().machine], b".", b".", what="pivot_root")
    c_call("umount2", b".", DETACH, what="unmount the old root")
    os.chdir("/")


def watch_over(command: int) -> NoReturn:
    """Act as first process of the namespace: adopt orphans, and exit like the command when it has ended."""
    while True:
        process, status = os.wait()
        if process == command:
            os._exit(exit_code(status))


def end_with_parent() -> None:
    """Let the kernel kill this process when its parent ends, and keep others from inspecting this one."""
    prctl(_PDEATHSIG, signal.SIGKILL)
    prctl(_DUMPABLE, 0)


def _make(step: dict[str, Any], root: str, temporary: str) -> None:
    target, source = f"{root}{step['target']}", step["source"]
    if step["kind"] in _MASKS and not os.path.lexists(target):
        return  # removed since it was listed, or hidden below another mount
    match step["kind"]:
        case "link":
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with contextlib.suppress(FileExistsError):
                os.symlink(source, target)
        case "empty_folder" if not source:
            mount("tmpfs", target, "tmpfs", NO_SET_ID | NO_DEVICES | READ_ONLY, "size=64k,mode=755")
        case "empty_file" | "empty_folder":
            _bind(source or f"{temporary}/empty", target)
            set_read_only(target)
        case "read":
            if os.path.exists(source):
                _bind(source, target)
                set_read_only(target)
        case _:
            _bind(source, target)


def _bind(source: str, target: str) -> None:
    if os.path.isdir(source):
        os.makedirs(target, exist_ok=True)
    elif not os.path.lexists(target):
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
    mount(source, target, flags=BIND | RECURSIVE)


def _make_devices(root: str, temporary: str) -> None:
    devices = f"{root}/dev"
    os.mkdir(devices)
    mount("tmpfs", devices, "tmpfs", NO_SET_ID, "size=64k,mode=755")
    for name in _DEVICES:
        _bind(f"/dev/{name}", f"{devices}/{name}")
    for name, target in _DEVICE_LINKS.items():
        os.symlink(target, f"{devices}/{name}")
    os.mkdir(f"{devices}/pts")
    options = "newinstance,ptmxmode=0666,mode=620"
    mount("devpts", f"{devices}/pts", "devpts", NO_SET_ID | _NO_PROGRAMS, options)
    os.mkdir(f"{devices}/shm")
    _bind(f"{temporary}/shm", f"{devices}/shm")
