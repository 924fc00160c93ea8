"""In the child: give everything up and become the command. Standard library only."""

import contextlib
import fcntl
import os
import resource
import select
import signal
import socket
from typing import Any, NamedTuple, NoReturn

from duckflow.safety.sandbox.child import landlock, seccomp
from duckflow.safety.sandbox.child.syscalls import LINUX, drop_privileges, outlive_parent

INFO, GATE, FILTER = 10, 11, 12
"""Descriptors bubblewrap is given: where it says its child's id, where it waits, where the filter is."""

_ABOVE = 20
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


class ChildPipes(NamedTuple):
    """The descriptors between the supervisor and its child."""

    output: int
    failing: int
    info: int
    gate: int
    news: int


def become(order: dict[str, Any], lines: ChildPipes) -> NoReturn:
    """Never comes back; what goes wrong is written to `failing`."""
    lines = ChildPipes(*(fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for one in lines))
    try:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(lines.output, 1)
        os.dup2(lines.output, 2)
        for number in HEARD:
            signal.signal(number, signal.SIG_DFL)
        limit(order["limits"])
        os.chdir(order["cwd"])
        if order["kind"] == "bubblewrap":
            _pass_on(order, lines)
        elif order["kind"] == "landlock":
            _give_up(order, lines)
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - commands are what it is for
    except BaseException as exc:  # noqa: BLE001 - nothing may go on in this copy of the process
        os.write(lines.failing, str(exc).encode() or b"it failed")
    os._exit(127)


def _pass_on(order: dict[str, Any], lines: ChildPipes) -> None:
    """Give bubblewrap its descriptors under the numbers its arguments name."""
    if order["copied"]:
        hand_out_renames(socket.socket(fileno=lines.news))
    program = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(program, seccomp.assemble(tuple(order["sockets"])))
    os.lseek(program, 0, os.SEEK_SET)
    program = fcntl.fcntl(program, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
    for source, number in ((lines.info, INFO), (lines.gate, GATE), (program, FILTER)):
        os.dup2(source, number, inheritable=True)


def hand_out_renames(news: socket.socket) -> None:
    """Let whoever listens there answer what this process and its children ask to be renamed."""
    with contextlib.suppress(OSError):  # a kernel that can't: then the copy refuses to rename some folders
        listener = seccomp.watch_renames()
        socket.send_fds(news, [b"r"], [listener])
        os.close(listener)


def _give_up(order: dict[str, Any], lines: ChildPipes) -> None:
    """Confine this process; where signals can't leave, a warden stays behind and the command goes on."""
    supervisor = os.getppid()
    drop_privileges()
    landlock.restrict(order["readable"], order["writable"])
    scoped = landlock.version() >= landlock.SIGNALS_SINCE
    spared = () if scoped else (*order["spared"], supervisor)
    seccomp.apply(seccomp.assemble(tuple(order["sockets"]), spared, apart=False))
    if scoped:
        _stay_as_warden(supervisor, lines)


def _stay_as_warden(supervisor: int, lines: ChildPipes) -> None:
    """Fork: the child comes back. This process waits for its end, or for a word from the supervisor, or for
    the supervisor's own end, and then kills all that it can: that is everything in here, and nothing else.
    """
    try:
        os.kill(supervisor, 0)
    except PermissionError:
        pass
    else:
        raise OSError("signals can leave the sandbox")
    command = os.fork()
    if command == 0:
        os.setsid()
        return
    outlive_parent()
    select.select([lines.gate, os.pidfd_open(command)], [], [])
    with contextlib.suppress(ProcessLookupError):  # there is nobody left
        os.kill(-1, signal.SIGKILL)
    code = os.waitstatus_to_exitcode(os.waitpid(command, 0)[1])
    os._exit(code if code >= 0 else 128 - code)


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
