"""System call filter (seccomp), in the form that the kernel reads. Standard library only.

For commands, it lists refused calls, not permitted ones, because a compiler or a test run may use any
ordinary call. Namespaces or Landlock protect files; this filter closes the gaps that they leave. A parser of
untrusted files gets another filter, which lists the few permitted calls.
"""

import ctypes
import errno
import os
import struct
from collections.abc import Iterable, Iterator
from functools import lru_cache

from duckflow.safety.syscalls import HERE, prctl, syscall

_SET_SECCOMP, _MODE_FILTER = 22, 2
_ALLOW, _ERRNO, _KILL, _TELL = 0x7FFF0000, 0x00050000, 0x80000000, 0x7FC00000
_LOAD, _EQUAL, _GREATER_EQUAL, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_X32 = 0x40000000
"""Call numbers from here on are the x32 variants of the same calls."""

ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""For each machine: the kernel's constant for it, and its column in the tables below."""

_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # other processes
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    # file systems and namespaces
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_tree_attr": (467, 467),
    "name_to_handle_at": (303, 264),
    "open_by_handle_at": (304, 265),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "fanotify_init": (300, 262),
    # keys
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    # ways around a filter, and into the kernel
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "iopl": (172, None),
    "ioperm": (173, None),
    # the machine
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "acct": (163, 89),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    # memory that is not attributed to any process
    "msgget": (68, 186),
}
"""Calls refused with any arguments, by their numbers on x86_64 and aarch64."""

_COMPUTING: dict[str, tuple[int, int]] = {
    "read": (0, 63),
    "write": (1, 64),
    "close": (3, 57),
    "fstat": (5, 80),
    "lseek": (8, 62),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "munmap": (11, 215),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "brk": (12, 214),
    "futex": (202, 98),
    "sched_yield": (24, 124),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132),
    "clock_gettime": (228, 113),
    "gettimeofday": (96, 169),
    "getpid": (39, 172),
    "gettid": (186, 178),
    "getrandom": (318, 278),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
"""Calls of a process that only computes, and uses files that are already open."""

_CLONE, _CLONE3, _IOCTL, _SOCKET, _PRLIMIT = (56, 220), (435, 435), (16, 29), (41, 198), (302, 261)
_SHMGET = (29, 194)
_OTHER_IPC = {"shmat": (30, 196), "shmctl": (31, 195), "semget": (64, 190), "semctl": (66, 191)}
_PRIORITIES: dict[tuple[int, int], tuple[bool, int]] = {
    (141, 140): (True, 0),  # setpriority
    (251, 30): (True, 1),  # ioprio_set
    (144, 119): (False, 0),  # sched_setscheduler
    (142, 118): (False, 0),  # sched_setparam
    (314, 274): (False, 0),  # sched_setattr
    (203, 122): (False, 0),  # sched_setaffinity
    (256, 238): (False, 0),  # migrate_pages
    (279, 239): (False, 0),  # move_pages
}
"""Calls that change the scheduling of a process, allowed only for the caller itself.

The number is what the first argument must be. With True, the second argument must be 0: the caller itself.
"""

SHARED_BYTES = 16_384
"""Largest segment of System V shared memory, in bytes: enough for locks of databases (64 MB in all)."""

_SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434),
}
_RENAMES: dict[str, tuple[int | None, int | None]] = {
    "rename": (82, None),
    "renameat": (264, 38),
    "renameat2": (316, 276),
}
_FALLOCATE, _GIVES_ROOM_BACK = (285, 47), 0x2 | 0x8
_ATTRIBUTES: dict[str, tuple[int | None, int | None]] = {
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
}
"""Calls that Landlock allows on any file of the user, and that few programs need."""

_SET_FLAGS = (0x40086602, 0x40046602, 0x401C5820)
"""ioctl requests that set attributes as `chattr` does."""

_HELD: dict[
    tuple[int | None, int | None], tuple[str, int | None, int | None, int | None, tuple[int, ...]]
] = {
    (90, None): ("mode", None, 0, None, (1,)),  # chmod
    (91, 52): ("mode", 0, None, None, (1,)),  # fchmod
    (268, 53): ("mode", 0, 1, None, (2,)),  # fchmodat
    (452, 452): ("mode", 0, 1, 3, (2,)),  # fchmodat2
    (92, None): ("owner", None, 0, None, (1, 2)),  # chown
    (94, None): ("own_owner", None, 0, None, (1, 2)),  # lchown
    (93, 55): ("owner", 0, None, None, (1, 2)),  # fchown
    (260, 54): ("owner", 0, 1, 4, (2, 3)),  # fchownat
    (280, 88): ("times", 0, 1, 3, (2,)),  # utimensat
    (132, None): ("old_times", None, 0, None, (1,)),  # utime
    (235, None): ("old_times", None, 0, None, (1, 1)),  # utimes
    (261, None): ("old_times", 0, 1, None, (2, 2)),  # futimesat
}
"""Calls that change permissions, owner or times of a file.

Each has the kind of change, and the positions of the arguments for folder or file, path, flags and values.
"""

_SECCOMP = (317, 277)
_SET_FILTER, _NEW_LISTENER, _WAIT_KILLABLE = 1, 8, 32
_NEW_NAMESPACES = 0x7E020000
_TERMINAL_TRICKS = (0x5412, 0x541C)
"""ioctl requests: TIOCSTI types into a terminal, TIOCLINUX pastes into a console."""

UNIX, INET, INET6, NETLINK = 1, 2, 10, 16
"""Socket families."""

IN_A_NAMESPACE = (UNIX, INET, INET6, NETLINK)
ON_THE_NETWORK = (INET, INET6, NETLINK)
"""Families without UNIX, because Landlock does not restrict connecting to sockets in the file system."""


def supported() -> bool:
    """Return whether the filter exists for this machine."""
    return os.uname().machine in ARCHITECTURES and struct.calcsize("P") == 8


@lru_cache
def assemble(sockets: tuple[int, ...], protected_pids: tuple[int, ...] = (), *, apart: bool = True) -> bytes:
    """Assemble the filter. Only these `sockets` families can be created; `protected_pids` get no signals.

    Without `apart`, the command shares the machine's namespaces: it could use System V memory and semaphores
    of others, and change other processes. Both are then refused.
    """
    architecture, column = ARCHITECTURES[os.uname().machine]
    lines = [
        _load(_ARCHITECTURE),
        *_unless(_EQUAL, architecture, _KILL),
        _load(_NUMBER),
        *_if(_GREATER_EQUAL, _X32, _refusal(errno.ENOSYS)),
    ]
    lines += _each(_REFUSED.values(), column, _refusal(errno.EPERM))
    # The flags of clone3 are in memory, which a filter can't read. If it fails, the C library uses clone.
    lines += _if(_EQUAL, _CLONE3[column], _refusal(errno.ENOSYS))
    lines += _call(_CLONE[column], [*_if(_ANY_BIT, _NEW_NAMESPACES, _refusal(errno.EPERM))])
    refused = _TERMINAL_TRICKS if apart else (*_TERMINAL_TRICKS, *_SET_FLAGS)
    tricks = [line for trick in refused for line in _if(_EQUAL, trick, _refusal(errno.EPERM))]
    lines += _call(_IOCTL[column], tricks, argument=1)
    if not apart:
        lines += _each((_SHMGET, *_OTHER_IPC.values()), column, _refusal(errno.EPERM))
        lines += _each(_ATTRIBUTES.values(), column, _refusal(errno.EOPNOTSUPP))
        for numbers, (argument, itself) in _PRIORITIES.items():
            only = [*_unless(_EQUAL, itself, _refusal(errno.EPERM))]
            only += [_load(_ARGUMENTS + 8), *_unless(_EQUAL, 0, _refusal(errno.EPERM))] if argument else []
            lines += _call(numbers[column], only)
    # Disk space that is reserved but not written is missing from the count of written bytes.
    room = [*_unless(_ANY_BIT, _GIVES_ROOM_BACK, _refusal(errno.EOPNOTSUPP))]
    lines += _call(_FALLOCATE[column], room, argument=1)
    # A detached segment belongs to no process and can't be counted, so only small ones are allowed.
    size = _ARGUMENTS + 8
    small = [*_if(_GREATER_EQUAL, SHARED_BYTES + 1, _refusal(errno.ENOMEM)), _load(size + 4)]
    lines += _call(_SHMGET[column], [*small, *_unless(_EQUAL, 0, _refusal(errno.ENOMEM))], argument=1)
    permitted = [line for kind in sockets for line in _if(_EQUAL, kind, _ALLOW)]
    lines += _call(_SOCKET[column], [*permitted, _answer(_refusal(errno.EPERM))])
    lines += _call(_PRLIMIT[column], [*_unless(_EQUAL, 0, _refusal(errno.EPERM))])
    for numbers in _SIGNALS.values() if protected_pids else ():
        lines += _call(numbers[column], list(_protect(protected_pids)))
    return b"".join([*lines, _answer(_ALLOW)])


def assemble_computing() -> bytes:
    """Assemble a filter that permits nothing but computing with what is already open."""
    architecture, column = ARCHITECTURES[os.uname().machine]
    lines = [_load(_ARCHITECTURE), *_unless(_EQUAL, architecture, _KILL), _load(_NUMBER)]
    lines += _each(_COMPUTING.values(), column, _ALLOW)
    return b"".join([*lines, _answer(_refusal(errno.EPERM))])


def apply(program: bytes) -> None:
    """Apply the filter to this process and its children permanently. Needs no_new_privs first."""
    held, description = _describe(program)
    prctl(_SET_SECCOMP, _MODE_FILTER, ctypes.addressof(description))
    del held


def watch_renames() -> int:
    """Hold renames by this process and its children. Return the descriptor through which to answer them."""
    return _watch(_RENAMES.values())


def watch_attributes() -> int:
    """Hold changes to permissions, owners and times of files. Return the descriptor to answer them."""
    return _watch(_HELD)


def _watch(calls: Iterable[tuple[int | None, int | None]]) -> int:
    architecture, column = ARCHITECTURES[os.uname().machine]
    lines = [_load(_ARCHITECTURE), *_unless(_EQUAL, architecture, _ALLOW), _load(_NUMBER)]
    lines += _each(calls, column, _TELL)
    held, description = _describe(b"".join([*lines, _answer(_ALLOW)]))
    arguments = _SET_FILTER, _NEW_LISTENER | _WAIT_KILLABLE, ctypes.addressof(description)
    listener = syscall(_SECCOMP[column], *arguments)
    del held
    return listener


def rename_call(number: int, words: list[int]) -> tuple[int, int, int, int, int]:
    """Return the arguments of a rename: folder and address of the name, for source and target, and flags."""
    _, column = ARCHITECTURES[os.uname().machine]
    if number == _RENAMES["rename"][column]:
        return HERE, words[0], HERE, words[1], 0
    flags = words[4] & 0xFFFFFFFF if number == _RENAMES["renameat2"][column] else 0
    return words[0], words[1], words[2], words[3], flags


def attribute_call(number: int, words: list[int]) -> tuple[str, int, int, int, list[int]]:
    """Return the arguments of an attribute call: kind, folder or file, address of the path, flags, values."""
    _, column = ARCHITECTURES[os.uname().machine]
    what, base, path, flags, values = next(call for one, call in _HELD.items() if one[column] == number)
    folder, address, how = (
        missing if at is None else words[at] for at, missing in ((base, HERE), (path, 0), (flags, 0))
    )
    return what, folder, address, how, [words[at] for at in values]


def _describe(program: bytes) -> "tuple[ctypes.Array[ctypes.c_char], ctypes.Array[ctypes.c_char]]":
    """Return two buffers: the filter's lines, which must stay referenced, and their description."""
    held = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(held))
    return held, ctypes.create_string_buffer(described, len(described))


def _protect(protected_pids: tuple[int, ...]) -> Iterator[bytes]:
    for process in protected_pids:
        for target in (process, -process):
            yield from _if(_EQUAL, target & 0xFFFFFFFF, _refusal(errno.EPERM))
    yield from _if(_EQUAL, -1 & 0xFFFFFFFF, _refusal(errno.EPERM))


def _call(number: int, checks: list[bytes], argument: int = 0) -> list[bytes]:
    """Check an argument of a call. Only its lower half is compared, because the kernel ignores the other."""
    body = [_load(_ARGUMENTS + 8 * argument), *checks, _answer(_ALLOW)]
    return [_line(_EQUAL, number, 0, len(body)), *body]


def _each(calls: Iterable[tuple[int | None, int | None]], column: int, answer: int) -> Iterator[bytes]:
    """Answer these calls, as far as this machine has them."""
    for numbers in calls:
        if (number := numbers[column]) is not None:
            yield from _if(_EQUAL, number, answer)


def _if(test: int, value: int, answer: int) -> tuple[bytes, bytes]:
    return _line(test, value, 0, 1), _answer(answer)


def _unless(test: int, value: int, answer: int) -> tuple[bytes, bytes]:
    return _line(test, value, 1, 0), _answer(answer)


def _refusal(code: int) -> int:
    return _ERRNO | code


def _load(offset: int) -> bytes:
    return _line(_LOAD, offset, 0, 0)


def _answer(value: int) -> bytes:
    return _line(_RETURN, value, 0, 0)


def _line(code: int, value: int, if_true: int, if_false: int) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)
