"""Landlock: a process permanently gives up access to all but the listed files. Standard library only.

A right to a folder includes everything below it and can't be withdrawn further down. So closed paths are
never listed; for a folder that contains a closed path, only its other entries are listed.
"""

import ctypes
import os
import stat
import struct
from collections.abc import Iterable

from duckflow.safety.descriptors import closing_fd
from duckflow.safety.syscalls import LINUX, syscall

OLDEST = 3
"""First version that also prevents truncating files; older versions are not safe enough."""

SIGNALS_SINCE = 6
"""First version that blocks signals to processes outside the sandbox."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446  # same numbers on every architecture
_VERSION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _TRUNCATE, _IOCTL_DEV = 1 << 6, 1 << 11, 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_OF_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_UP_TO_TRUNCATE = (1 << 15) - 1
_SCOPE_ABSTRACT_SOCKETS, _SCOPE_SIGNALS = 1, 2


def version() -> int:
    """Return the Landlock version of this kernel, 0 for none."""
    if not LINUX:
        return 0
    try:
        return syscall(_CREATE, 0, 0, _VERSION)
    except OSError:
        return 0


def make_rules(readable: Iterable[str], writable: Iterable[str]) -> int:
    """Create rules that allow these files and folders as they are now. Return the descriptor of the rules."""
    found = version()
    if found < OLDEST:
        raise OSError(f"Landlock version {found} is too old")
    handled = _UP_TO_TRUNCATE | (_IOCTL_DEV if found >= 5 else 0)
    scoped = _SCOPE_ABSTRACT_SOCKETS | _SCOPE_SIGNALS if found >= SIGNALS_SINCE else 0
    ruleset = ctypes.create_string_buffer(struct.pack("QQQ", handled, 0, scoped), 24)
    opened = syscall(_CREATE, ctypes.addressof(ruleset), len(ruleset), 0)
    try:
        for path in readable:
            _allow(opened, path, _READ)
        for path in writable:
            _allow(opened, path, _UP_TO_TRUNCATE & ~(_MAKE_CHAR | _MAKE_BLOCK))
    except BaseException:
        os.close(opened)
        raise
    return opened


def restrict(rules: int) -> None:
    """Restrict this process and its children to these rules permanently. Needs no_new_privs first."""
    syscall(_RESTRICT, rules, 0)


def _allow(ruleset: int, path: str, rights: int) -> None:
    """Add a rule for one path, unless the path is gone or has become a link."""
    try:
        opened = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    with closing_fd(opened) as there:
        mode = os.fstat(there).st_mode
        if stat.S_ISLNK(mode):
            return
        allowed = rights if stat.S_ISDIR(mode) else rights & _OF_A_FILE
        rule = ctypes.create_string_buffer(struct.pack("=Qi", allowed, there), 12)
        syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.addressof(rule), 0)
