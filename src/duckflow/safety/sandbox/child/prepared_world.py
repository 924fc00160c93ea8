"""A world of plain namespaces that is made before the command is known, so that it need not wait for it.

Its first process has namespaces of its own, a root of its own with devices and /proc, and waits. Told what
to run, it adds the copy and what else the command sees, gives up all rights and starts it. If that process
ends, all of it ends. Standard library only.
"""

import contextlib
import json
import os
import signal
import socket
from typing import Any, NoReturn

from duckflow.safety.sandbox.child import namespaces, seccomp
from duckflow.safety.sandbox.child.overlay import mount_copy
from duckflow.safety.sandbox.child.setup import HEARD, hand_out_renames, limit
from duckflow.safety.sandbox.child.syscalls import die_with_parent, drop_capabilities, never_gain_privileges

_LENGTH = 4
_GO = b"g"


class PreparedWorld:
    """The first process of a world, from outside. `failed` is where it says what went wrong.

    At `orders` it hands out, when the command begins, who is asked about renames.
    """

    def __init__(self, temporary: str, *, own_network: bool = True, own_users: bool | None = None) -> None:
        self.orders, theirs = socket.socketpair()
        self.failed, failing = os.pipe()
        heard, saying = os.pipe()
        parent = os.getpid()
        helper = os.fork()
        if helper == 0:
            die_with_parent(parent)
            self.orders.close()
            users = os.geteuid() != 0 if own_users is None else own_users
            _leave(theirs, failing, saying, temporary, own_network=own_network, own_users=users)
        for one in (theirs.detach(), failing, saying):
            os.close(one)
        os.waitpid(helper, 0)  # from now on its child is ours
        said = os.read(heard, 20)
        os.close(heard)
        self.process = int(said or 0)
        self.init: int | None = None
        if said:
            with contextlib.suppress(OSError):  # it has ended already
                self.init = os.pidfd_open(self.process)
            with contextlib.suppress(OSError):
                self.orders.sendall(_GO)

    def run(self, order: dict[str, Any], output: int) -> None:
        """Let it become the command."""
        data = json.dumps(order).encode()
        with contextlib.suppress(OSError):  # why is in `failed`
            socket.send_fds(self.orders, [len(data).to_bytes(_LENGTH)], [output])
            self.orders.sendall(data)


def _leave(
    orders: socket.socket, failing: int, saying: int, temporary: str, *, own_network: bool, own_users: bool
) -> NoReturn:
    """Leave the machine's namespaces and fork the first process of the new ones, which outlives this one."""
    try:
        namespaces.separate(own_network=own_network, own_users=own_users)
        first = os.fork()
        if first == 0:
            _close_all_but(orders.fileno(), failing)
            _be_first(orders, temporary)
        os.write(saying, str(first).encode())
        os._exit(0)
    except BaseException as exc:  # noqa: BLE001 - nothing may go on in this copy of the process
        os.write(failing, str(exc).encode() or b"it failed")
    os._exit(127)


def _close_all_but(*kept: int) -> None:
    """Nothing of the launcher's comes along: neither where it is given orders nor what else is open."""
    below = 2
    for one in (*sorted(kept), os.sysconf("SC_OPEN_MAX")):
        os.closerange(below + 1, one)
        below = one


def _be_first(orders: socket.socket, temporary: str) -> NoReturn:
    os.setsid()
    root = f"{temporary}/root"
    namespaces.make_root(root, temporary)
    never_gain_privileges()
    if orders.recv(1) != _GO:
        os._exit(1)
    namespaces.end_with_parent()
    beginning, opened, _, _ = socket.recv_fds(orders, _LENGTH, 1)
    if not opened:
        os._exit(1)  # nobody needs it
    size, data = int.from_bytes(beginning), bytearray()
    while len(data) < size:
        data += orders.recv(size - len(data)) or os._exit(1)
    order = json.loads(data)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for number in (1, 2):
        os.dup2(opened[0], number)
    os.close(opened[0])
    limit(order["limits"])
    if order["view"] is not None:
        mount_copy(order["view"])
    namespaces.build_world(root, temporary, order["world"])
    os.chdir(order["cwd"])
    drop_capabilities()
    if order["copied"]:
        hand_out_renames(orders)
    seccomp.apply(seccomp.assemble(tuple(order["sockets"])))
    for number in HEARD:
        signal.signal(number, signal.SIG_DFL)
    argv = order["argv"]
    namespaces.watch_over(os.posix_spawn(argv[0], argv, order["env"], setsid=True))
