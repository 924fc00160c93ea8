"""Process that waits in its sandbox until the command is known, so that the command starts without delay.

With plain namespaces it is their first process, with its own root, devices and /proc. For bubblewrap it has
all except the parts that bubblewrap makes itself. For Landlock it has no rights left. When it gets the order,
it adds the copy and the rest of what the command sees, and starts the command. Standard library only.
"""

import fcntl
import os
import signal
import socket
from typing import Any, NamedTuple, NoReturn

from duckflow.safety.sandbox.child import namespaces, seccomp
from duckflow.safety.sandbox.child.overlay import mount_copy
from duckflow.safety.sandbox.child.setup import (
    FILTER,
    GATE,
    INFO,
    RESET_SIGNALS,
    confine_by_landlock,
    hand_out,
    hand_out_attributes,
    limit,
    stay_as_warden,
)
from duckflow.safety.sandbox.child.wire import receive
from duckflow.safety.syscalls import (
    die_with_parent,
    drop_capabilities,
    drop_privileges,
    never_gain_privileges,
    outlive_parent,
)

GO = b"g"
_ABOVE = 20


class ChildLines(NamedTuple):
    """Connections to the process that forked this one: incoming orders, and reports about its state."""

    orders: socket.socket
    failing: int
    info: int
    gate: int


class PreparedMounts(NamedTuple):
    """Mounts below `root` that the command sees."""

    root: str
    temporary: str
    ahead: list[dict[str, Any]]

    def begin(self) -> None:
        """Mount the parts that every command gets."""
        namespaces.make_root(self.root, self.temporary)
        namespaces.make_mounts(self.root, self.temporary, self.ahead)

    def finish(self, order: dict[str, Any]) -> None:
        """Add the copy and the mounts of this command. Prepared mounts that are outdated are made again."""
        for copy in order["copies"] if not order["held"] else ():
            mount_copy(copy)
        done = namespaces.count_valid(self.root, self.temporary, self.ahead)
        namespaces.make_mounts(self.root, self.temporary, order["mounts"][done:])
        namespaces.close_root(self.root)


def prepare(
    kind: str, lines: ChildLines, prepared: PreparedMounts, *, own_network: bool, own_users: bool
) -> NoReturn:
    """Prepare the sandbox and become the command. Never returns; errors are written to `failing`."""
    try:
        if kind == "namespaces":
            namespaces.separate(own_network=own_network, own_users=own_users, own_rest=True)
            if first := os.fork():  # the child outlives this process
                os.write(lines.info, str(first).encode())
                os._exit(0)
        _close_all_but(lines.orders.fileno(), *lines[1:])
        os.setsid()
        if kind == "namespaces":
            _be_first(lines.orders, prepared)
        parent = os.getppid()
        if kind == "bubblewrap":
            namespaces.separate(own_network=own_network, own_users=own_users, own_rest=False)
            die_with_parent(parent)  # the kernel resets this when the user changes
            prepared.begin()
            hand_out(lines.orders)
        elif kind == "landlock":
            drop_privileges()
            hand_out_attributes(lines.orders)
        order, opened = _get_order(lines.orders)
        if order["kind"] == "landlock" and confine_by_landlock(order, opened[1], parent):
            outlive_parent()  # the gate shows when the parent ends
            stay_as_warden(_start(order), lines.gate)
        if order["kind"] == "bubblewrap":
            _pass_on(order, lines, prepared)
        for number in RESET_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        os.execve(order["argv"][0], order["argv"], order["env"])  # noqa: S606 - this is its purpose
    except BaseException as exc:  # noqa: BLE001 - nothing may run on in this copy of the process
        os.write(lines.failing, str(exc).encode() or b"it failed")
    os._exit(127)


def _close_all_but(*kept: int) -> None:
    """Close all descriptors of the launcher except these."""
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
    limit(order["limits"])
    if not order["mounts"]:
        os.chdir(order["cwd"])
    return order, opened


def _start(order: dict[str, Any]) -> int:
    for number in RESET_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    return os.posix_spawn(order["argv"][0], order["argv"], order["env"], setsid=True)


def _be_first(orders: socket.socket, prepared: PreparedMounts) -> NoReturn:
    prepared.begin()
    namespaces.mount_processes(prepared.root)
    never_gain_privileges()
    hand_out(orders)
    if orders.recv(1) != GO:
        os._exit(1)
    namespaces.end_with_parent()
    order, _ = _get_order(orders)
    prepared.finish(order)
    namespaces.move_into(prepared.root)
    os.chdir(order["cwd"])
    drop_capabilities()
    seccomp.apply(seccomp.assemble(tuple(order["sockets"])))
    namespaces.watch_over(_start(order))


def _pass_on(order: dict[str, Any], lines: ChildLines, prepared: PreparedMounts) -> None:
    """Make the mounts that bubblewrap shows, and give it descriptors under the numbers in its arguments."""
    if order["mounts"]:
        prepared.finish(order)
    elif order["copies"]:
        hand_out(lines.orders)
    program = os.memfd_create("filter", os.MFD_CLOEXEC)
    os.write(program, seccomp.assemble(tuple(order["sockets"])))
    os.lseek(program, 0, os.SEEK_SET)
    given = [fcntl.fcntl(one, fcntl.F_DUPFD_CLOEXEC, _ABOVE) for one in (lines.info, lines.gate, program)]
    for source, number in zip(given, (INFO, GATE, FILTER), strict=True):
        os.dup2(source, number, inheritable=True)
