"""Process that waits inside its sandbox for the command, so that the command starts without delay.

With plain namespaces it is their first process, with its own root, devices and /proc. For Landlock it has
already dropped all privileges. When it gets the order, it adds the copies and the other mounts of the
command, and starts it. Bubblewrap itself makes all mounts but the copies. Standard library only.
"""

import contextlib
import fcntl
import os
import resource
import select
import signal
import socket
from typing import Any, NamedTuple, NoReturn

from duckflow.safety.sandbox.child import landlock, namespaces, seccomp
from duckflow.safety.sandbox.child.overlay import (
    NEW_NETWORK,
    bring_up_loopback,
    enter_copies,
    mount_copy,
    unshare,
)
from duckflow.safety.sandbox.child.process_tree import exit_code
from duckflow.safety.sandbox.child.wire import receive
from duckflow.safety.syscalls import (
    LINUX,
    die_with_parent,
    drop_capabilities,
    drop_privileges,
    never_gain_privileges,
    outlive_parent,
)

GO = b"g"
ATTRIBUTES, RENAMES, GATEWAY = b"a", b"r", b"g"
"""Messages with descriptors: for answering attribute calls, for keeping mounts and answering renames, and a
socket that takes connections from the command."""

INFO, GATE, FILTER = 10, 11, 12
"""Descriptors for bubblewrap: where it writes its child's id, where it waits, and where its filter is."""

_ABOVE = 20
_MB = 1_000_000
_RESET_SIGNALS = (
    *(signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP),
    signal.SIGCHLD,
)
"""Signals to reset, because Python or the launcher changes some and a program would inherit that."""

_FIRST_TO_GO = b"500"
"""Score for the kernel: if memory runs out, it ends the command before the user's other programs."""


class ChildLines(NamedTuple):
    """Connections to the process that forked this one: for incoming orders, and for reports to it."""

    orders: socket.socket
    failing: int
    info: int
    gate: int


def prepare(
    kind: str,
    lines: ChildLines,
    temporary: str,
    ahead: list[dict[str, Any]],
    *,
    own_network: bool,
    own_users: bool,
) -> NoReturn:
    """Prepare the sandbox, with the mounts `ahead` of every command, and become the command.

    Never returns; errors are written to `failing`.
    """
    try:
        if kind == "namespaces":
            namespaces.separate(own_network=own_network, own_users=own_users)
            if first := os.fork():  # the child outlives this process
                os.write(lines.info, str(first).encode())
                os._exit(0)
        _close_all_but(lines.orders.fileno(), *lines[1:])
        os.setsid()
        if kind == "namespaces":
            _be_first(lines.orders, temporary, ahead)
        parent = os.getppid()
        if kind == "landlock":
            drop_privileges()
            _hand_over(lines.orders, ATTRIBUTES, [seccomp.watch_attributes()])
        order, opened = _get_order(lines.orders)
        if order["kind"] == "landlock" and _confine_by_landlock(order, opened[1], parent):
            outlive_parent()  # the gate shows when the parent ends
            _stay_as_warden(_start(order), lines.gate)
        if order["kind"] == "bubblewrap":
            _prepare_bubblewrap(order, lines, parent)
        _reset_signals()
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - this is its purpose
    except BaseException as exc:  # noqa: BLE001 - nothing may continue in this copy of the process
        os.write(lines.failing, str(exc).encode() or b"it failed")
    os._exit(127)


def _close_all_but(*kept: int) -> None:
    below = 2
    for one in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(below + 1, one)
        below = one


def _get_order(orders: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """Receive the order, and set up its input, output and limits."""
    order, _, opened = receive(orders, 2)
    if order is None or not opened:
        os._exit(1)  # no order will come
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(opened[0], number)
    os.close(opened[0])
    _set_limits(order["limits"])
    if not order["mounts"]:
        os.chdir(order["cwd"])
    return order, opened


def _set_limits(limits: dict[str, int]) -> None:
    """Set the limits that the kernel enforces, for this process and all it starts."""
    size = limits["file_mb"] * _MB
    for kind, wanted in ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_FSIZE, size)):
        _, hard = resource.getrlimit(kind)
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(kind, (most, most))
    if not LINUX:
        return
    most = limits["nproc_limit"]
    with contextlib.suppress(OSError, ValueError):  # more than the user may have: the existing limit applies
        resource.setrlimit(resource.RLIMIT_NPROC, (most, most))
    with contextlib.suppress(OSError):
        opened = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(opened, _FIRST_TO_GO)
        os.close(opened)


def _start(order: dict[str, Any]) -> int:
    _reset_signals()
    return os.posix_spawn(order["argv"][0], order["argv"], order["env"], setsid=True)


def _reset_signals() -> None:
    for number in _RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)


def _be_first(orders: socket.socket, temporary: str, ahead: list[dict[str, Any]]) -> NoReturn:
    root = f"{temporary}/root"
    namespaces.make_root(root, temporary)
    namespaces.make_mounts(root, temporary, ahead)
    namespaces.mount_processes(root)
    never_gain_privileges()
    _hand_over_renames(orders)
    if orders.recv(1) != GO:
        os._exit(1)
    namespaces.end_with_parent()
    order, _ = _get_order(orders)
    for copy in order["copies"] if not order["held"] else ():
        mount_copy(copy)
    valid = namespaces.count_valid(root, temporary, ahead)  # outdated ones are made again
    namespaces.make_mounts(root, temporary, order["mounts"][valid:])
    namespaces.close_root(root)
    namespaces.move_into(root)
    os.chdir(order["cwd"])
    drop_capabilities()
    _open_gateway(order, orders)
    seccomp.apply(seccomp.assemble(tuple(order["sockets"])))
    namespaces.watch_over(_start(order))


def _hand_over(news: socket.socket, word: bytes, opened: list[int]) -> None:
    socket.send_fds(news, [word], opened)
    for one in opened:
        os.close(one)


def _hand_over_renames(news: socket.socket) -> None:
    """Let the supervisor answer renames and keep the mounts, so that this process need not unmount them."""
    opened = [os.open("/proc/self/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)]
    with contextlib.suppress(OSError):  # on a kernel without this feature, commands can't rename some folders
        opened.append(seccomp.watch_renames())
    _hand_over(news, RENAMES, opened)


def _open_gateway(order: dict[str, Any], news: socket.socket) -> None:
    """If the command may reach some hosts, hand over a socket inside its network for them."""
    if order["gateway"]:
        opened = socket.create_server(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{opened.getsockname()[1]}"
        order["env"].update(dict.fromkeys(order["gateway"], address))
        _hand_over(news, GATEWAY, [opened.detach()])


def _prepare_bubblewrap(order: dict[str, Any], lines: ChildLines, parent: int) -> None:
    """Mount the copies, and give bubblewrap its descriptors under the numbers in its arguments."""
    if order["copies"] and not order["held"]:
        enter_copies(order["copies"])
        die_with_parent(parent)  # the kernel resets this when the user id changes
        if order["gateway"]:
            unshare(NEW_NETWORK)
            bring_up_loopback()
    if order["copies"]:
        _hand_over_renames(lines.orders)
        _open_gateway(order, lines.orders)
    program = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(program, seccomp.assemble(tuple(order["sockets"])))
    os.lseek(program, 0, os.SEEK_SET)
    given = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for one in (lines.info, lines.gate, program)]
    for source, number in zip(given, (INFO, GATE, FILTER), strict=True):
        os.dup2(source, number, inheritable=True)


def _confine_by_landlock(order: dict[str, Any], rules: int, supervisor: int) -> bool:
    """Apply Landlock to this process. Return whether the command's signals can't reach a warden process."""
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


def _stay_as_warden(command: int, gate: int) -> NoReturn:
    """Wait until the command or supervisor ends, or the gate gets a byte. Then kill the whole sandbox."""
    select.select([gate, os.pidfd_open(command)], [], [])
    with contextlib.suppress(ProcessLookupError):  # no process is left
        os.kill(-1, signal.SIGKILL)
    os._exit(exit_code(os.waitpid(command, 0)[1]))
