"""In the child: limits, and what is given up for ever. Standard library only."""

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
"""Descriptors bubblewrap is given: where it says its child's id, where it waits, where the filter is."""

ATTRIBUTES = b"a"
"""What is said with the descriptor of who is asked about attributes of files."""

_MB = 1_000_000
HEARD = (
    signal.SIGPIPE,
    signal.SIGXFSZ,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGTERM,
    signal.SIGHUP,
    signal.SIGCHLD,
)
"""Some are ignored by Python or by the launcher, and a program would inherit that."""

_FIRST_TO_GO = b"500"
"""For the kernel, when memory runs out: rather the command than the user's other work."""


def hand_out_attributes(news: socket.socket) -> None:
    """Let whoever listens there change permissions and times of files for this process and its children."""
    listener = seccomp.watch_attributes()
    socket.send_fds(news, [ATTRIBUTES], [listener])
    os.close(listener)


def hand_out(news: socket.socket) -> None:
    """Let whoever listens there answer what this process and its children ask to be renamed.

    And keep the mounts of this process, so that its end need not wait until they are taken off.
    """
    opened = [os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)]
    with contextlib.suppress(OSError):  # a kernel that can't: then the copy refuses to rename some folders
        opened.append(seccomp.watch_renames())
    socket.send_fds(news, [b"r"], opened)
    for one in opened:
        os.close(one)


def confine_by_landlock(order: dict[str, Any], rules: int, supervisor: int) -> bool:
    """Confine this process, which has no rights left. `rules`: a descriptor of them.

    Whether signals can't leave: then a warden can stay behind that ends all of it.
    """
    landlock.restrict(rules)
    os.close(rules)
    scoped = landlock.version() >= landlock.SIGNALS_SINCE
    spared = () if scoped else (*order["spared"], supervisor)
    seccomp.apply(seccomp.assemble(tuple(order["sockets"]), spared, apart=False))
    if scoped:
        with contextlib.suppress(PermissionError):
            os.kill(supervisor, 0)
            raise OSError("signals can leave the sandbox")
    return scoped


def stay_as_warden(command: int, gate: int) -> NoReturn:
    """Wait for the command's end, or for a word from the supervisor, or for the supervisor's own end, and
    then kill all that it can: that is everything in here, and nothing else.
    """
    select.select([gate, os.pidfd_open(command)], [], [])
    with contextlib.suppress(ProcessLookupError):  # there is nobody left
        os.kill(-1, signal.SIGKILL)
    os._exit(exit_code(os.waitpid(command, 0)[1]))


def limit(limits: dict[str, int]) -> None:
    """Set what the kernel itself watches over, for this process and all it starts."""
    size = limits["file_mb"] * _MB
    for kind, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, size)):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))
    if not LINUX:
        return
    brake = limits["brake"]
    with contextlib.suppress(OSError, ValueError):  # more than the user may have: then what there is holds
        resource.setrlimit(resource.RLIMIT_NPROC, (brake, brake))
    with contextlib.suppress(OSError):
        opened = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(opened, _FIRST_TO_GO)
        os.close(opened)
