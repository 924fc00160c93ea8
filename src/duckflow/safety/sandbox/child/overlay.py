"""Copy-on-write mount of a folder at the folder's own path, for this process and its children.

The lower layer is the folder itself. The upper layer is an empty folder of Duckflow's, which receives all
writes. Other processes do not see the mount. Standard library only.
"""

import ctypes
import fcntl
import os
import re
import socket
import struct
from typing import Any

from duckflow.safety.descriptors import closing_fd
from duckflow.safety.syscalls import c_call

NEW_MOUNTS, NEW_USERS, NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
READ_ONLY, NO_SET_ID, NO_DEVICES, REMOUNT, BIND, RECURSIVE, PRIVATE = 1, 2, 4, 32, 1 << 12, 1 << 14, 1 << 18
DETACH = 2

_OPTIONS = "userxattr,volatile,index=off,metacopy=off"
"""Mount options. The overlay attributes used can be set by an ordinary user but not forged by commands.

`volatile` skips syncing: data that must be durable is synced when effects are applied.
"""

_SET_FLAGS, _UP = 0x8914, 0x1
_SET_ATTRIBUTES = 442  # same number on every architecture
_HERE, _ALL_BELOW = -100, 0x8000
_ATTRIBUTE_READ_ONLY, _ATTRIBUTE_NO_SET_ID, _ATTRIBUTE_NO_DEVICES = 1, 2, 4


def mount(source: str, target: str, kind: str | None = None, flags: int = 0, options: str = "") -> None:
    """Call mount(2). Raise OSError if it fails."""
    words = (os.fsencode(word) if word else None for word in (source, target, kind, options))
    where, place, which, how = words
    c_call("mount", where, place, which, ctypes.c_ulong(flags), how, what=f"mount {target}")


def unshare(flags: int) -> None:
    """Leave namespaces for new ones. An ordinary user must include `NEW_USERS`."""
    user, group = os.getuid(), os.getgid()
    c_call("unshare", flags, what="unshare")
    if flags & NEW_USERS:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")


def enter_copies(copies: list[dict[str, Any]]) -> None:
    """Replace these folders by their copies, in this process and its children."""
    unshare(NEW_MOUNTS | (0 if os.geteuid() == 0 else NEW_USERS))
    mount("none", "/", flags=RECURSIVE | PRIVATE)
    for copy in copies:
        mount_copy(copy)


def mount_copy(copy: dict[str, Any]) -> None:
    """Mount the copy over its folder. Uses descriptors, because folder names may contain commas."""
    flags = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    held = [os.open(copy[name], flags) for name in ("lower", "upper", "work")]
    mounts = _mounts_below(copy["lower"])
    below = {path: os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC) for path in mounts}
    try:
        lower, upper, work = (f"/proc/self/fd/{one}" for one in held)
        options = f"lowerdir={lower},upperdir={upper},workdir={work},{_OPTIONS}"
        mount("overlay", lower, "overlay", NO_SET_ID | NO_DEVICES, options)
        for path, opened in below.items():  # not part of the copy, so read-only
            mount(f"/proc/self/fd/{opened}", path, flags=BIND | RECURSIVE)
            set_read_only(path)
    finally:
        for one in (*held, *below.values()):
            os.close(one)


def mount_points(process: int | str = "self") -> list[str]:
    """Return the mount points that a process sees."""
    found: list[str] = []
    with open(f"/proc/{process}/mountinfo", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            path = line.split(" ", 5)[4]
            if "\\" in path:
                path = re.sub(r"\\(\d{3})", lambda code: chr(int(code[1], 8)), path)
            found.append(path)
    return found


def _mounts_below(folder: str) -> list[str]:
    """Return the outermost mount points in a folder; they include the deeper ones."""
    found: list[str] = []
    for path in mount_points():
        if path.startswith(f"{folder}/") and not any(path.startswith(f"{one}/") for one in found):
            found.append(path)
    return found


def set_read_only(target: str, flags: int = _ALL_BELOW) -> None:
    """Make a mount and all mounts below it read-only at once, so that there is no moment to write to them."""
    wanted = _ATTRIBUTE_READ_ONLY | _ATTRIBUTE_NO_SET_ID | (_ATTRIBUTE_NO_DEVICES if flags else 0)
    attributes = struct.pack("4Q", wanted, 0, 0, 0)
    given = os.fsencode(target), flags, attributes, ctypes.c_size_t(len(attributes))
    c_call("syscall", _SET_ATTRIBUTES, _HERE, *given, what=f"read-only {target}")


def bring_up_loopback() -> None:
    """Bring up the loopback interface of a new network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh22x", b"lo", _UP))


def _write(path: str, text: str) -> None:
    with closing_fd(os.open(path, os.O_WRONLY | os.O_CLOEXEC)) as opened:
        os.write(opened, text.encode())
