"""Set up the child process: limits, and rights that it gives up permanently. Standard library only."""

import contextlib
import os
import resource
import select
import signal
import socket
from typing import Any, NoReturn

from duckflow.safety.sandbox.child import landlock, seccomp
from duckflow.safety.sandbox.child.process_tree import exit_code
from duckflow.safety.syscalls import LINUX

INFO, GATE, FILTER = 10, 11, 12
"""Descriptors for bubblewrap: where it writes its child's id, where it waits, and where the filter is."""

ATTRIBUTES = b"a"
"""Message that carries the descriptor for attribute calls."""

_MB = 1_000_000
RESET_SIGNALS = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
)
"""Signals to reset, because Python or the launcher changes some, and a program would inherit that."""

_FIRST_TO_GO = b"500"
"""Score for the kernel: when memory runs out, it ends the command before the user's other work."""


def hand_out_attributes(news: socket.socket) -> None:
    """Let the listener change permissions and times of files for this process and its children."""
    listener = seccomp.watch_attributes()
    socket.send_fds(news, [ATTRIBUTES], [listener])
    os.close(listener)


def hand_out(news: socket.socket) -> None:
    """Let the listener answer renames by this process and its children.

    It also gets the mounts of this process, so that the end of the process need not wait for unmounting.
    """
    opened = [os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)]
    with contextlib.suppress(OSError):  # on a kernel without this, the copy refuses to rename some folders
        opened.append(seccomp.watch_renames())
    socket.send_fds(news, [b"r"], opened)
    for one in opened:
        os.close(one)


def confine_by_landlock(order: dict[str, Any], rules: int, supervisor: int) -> bool:
    """Confine this process, which has no rights left, by the descriptor `rules`.

    Return whether signals can't leave the sandbox. If so, a warden can stay behind and end all of it.
    """
    landlock.restrict(rules)
    os.close(rules)
    scoped = landlock.version() >= landlock.SIGNALS_SINCE
    protected_pids = () if scoped else (*order["protected_pids"], supervisor)
    seccomp.apply(seccomp.assemble(tuple(order["sockets"]), protected_pids, apart=False))
    if scoped:
        with contextlib.suppress(PermissionError):
            os.kill(supervisor, 0)
            raise OSError("signals can leave the sandbox")
    return scoped


def stay_as_warden(command: int, gate: int) -> NoReturn:
    """Wait for the end of the command or the supervisor, or for a message, then kill all it can.

    That is everything in this sandbox, and nothing else.
    """
    select.select([gate, os.pidfd_open(command)], [], [])
    with contextlib.suppress(ProcessLookupError):  # no process is left
        os.kill(-1, signal.SIGKILL)
    os._exit(exit_code(os.waitpid(command, 0)[1]))


def limit(limits: dict[str, int]) -> None:
    """Set the limits that the kernel enforces, for this process and all it starts."""
    size = limits["file_mb"] * _MB
    for kind, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, size)):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))
    if not LINUX:
        return
    nproc_limit = limits["nproc_limit"]
    with contextlib.suppress(OSError, ValueError):  # more than the user may have: the existing limit applies
        resource.setrlimit(resource.RLIMIT_NPROC, (nproc_limit, nproc_limit))
    with contextlib.suppress(OSError):
        opened = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(opened, _FIRST_TO_GO)
        os.close(opened)
