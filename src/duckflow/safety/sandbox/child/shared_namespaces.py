"""Process that keeps one copy of the folder mounted, and one loopback network, for several commands (G11).

Commands are forked from its child, so they can reach each other's ports; those that may use the machine's
network are forked from the process itself. When a file tool changes the folder meanwhile, the change is
written into the view, because the kernel does not promise that it would appear there.
"""

import contextlib
import os
import signal
import socket
import stat
from collections.abc import Callable
from types import FrameType
from typing import Any

from duckflow.safety.descriptors import closing_fd, copy_to_new, temporary_in
from duckflow.safety.files.confined_open import ConfinedFolder
from duckflow.safety.files.git_directory import INSIDE
from duckflow.safety.sandbox.child.freezer import Freezer
from duckflow.safety.sandbox.child.overlay import NEW_NETWORK, bring_up_loopback, enter_copies, unshare
from duckflow.safety.sandbox.child.process_tree import end_process_tree, reap
from duckflow.safety.syscalls import adopt_orphans, fork_child

RUN_OFFLINE, RUN_ONLINE, PUT, REMOVE, FREEZE, THAW = b"r", b"n", b"p", b"d", b"f", b"t"
"""Requests, as the first byte of a message."""

READY, DONE, FAILED, MOVED = b"+", b".", b"-", b"m"
"""Answers. `MOVED`: a process ran although it should have stood still."""

_LONGEST = 1 << 16
_DESCRIPTORS = 2

Supervise = Callable[[socket.socket, list[int]], None]


def hold(control: socket.socket, order: dict[str, Any], supervise: Supervise) -> None:
    """Create the view, report it, and serve until the requesting process is gone. Then end all commands."""
    signal.signal(signal.SIGCHLD, _reap)
    try:
        enter_copies(order["copies"])
        apart, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        fork_child(lambda: _serve_apart(theirs, supervise, (apart, control)))
        theirs.close()
        roots = [ConfinedFolder(one["lower"]) for one in order["copies"]]
    except OSError as exc:
        control.sendall(FAILED + str(exc).encode())
        return
    control.sendall(READY)

    def begin(word: bytes, given: list[int]) -> None:
        if word == RUN_OFFLINE:
            socket.send_fds(apart, [RUN_OFFLINE], given)
            apart.recv(1)  # it has forked, so that freezing finds the new process
        else:
            _fork_supervisor(given, supervise, (control, apart))
        for one in given:
            os.close(one)

    freezer = Freezer()
    waiting: list[tuple[bytes, list[int]]] = []
    while True:
        said, opened, _, _ = socket.recv_fds(control, _LONGEST, _DESCRIPTORS)
        word = said[:1]
        if not word:
            break
        if word in (RUN_OFFLINE, RUN_ONLINE):
            waiting.append((word, opened))
        else:
            control.sendall(_answer(freezer, roots, said, opened))
            for one in opened:
                os.close(one)
        while waiting and not freezer.frozen:
            begin(*waiting.pop(0))
    freezer.close()
    end_process_tree({})
    freezer.close()


def _reap(_number: int, _frame: FrameType | None) -> None:
    reap({})


def _serve_apart(orders: socket.socket, supervise: Supervise, not_ours: tuple[socket.socket, ...]) -> None:
    """Fork commands that share one separate loopback network."""
    for one in not_ours:
        one.close()
    adopt_orphans()
    unshare(NEW_NETWORK)
    bring_up_loopback()
    while True:
        said, opened, _, _ = socket.recv_fds(orders, _LONGEST, _DESCRIPTORS)
        if not said:
            break
        _fork_supervisor(opened, supervise, (orders,))
        orders.send(DONE)
        for one in opened:
            os.close(one)


def _fork_supervisor(opened: list[int], supervise: Supervise, not_its: tuple[socket.socket, ...]) -> None:
    def work() -> None:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        adopt_orphans()
        for one in not_its:
            one.close()
        for one in opened:
            os.set_inheritable(one, False)
        supervise(socket.socket(fileno=opened[0]), opened[1:])

    fork_child(work)


def _answer(freezer: Freezer, roots: list[ConfinedFolder], said: bytes, opened: list[int]) -> bytes:
    if said[:1] == FREEZE:
        freezer.freeze()
        return DONE
    if said[:1] == THAW:
        return DONE if freezer.thaw() else MOVED
    return _change(roots, said, opened)


def _change(roots: list[ConfinedFolder], said: bytes, opened: list[int]) -> bytes:
    """Write a file of the folder into the copy or remove it there, without following links."""
    path = os.fsdecode(said[1:])
    outside = len(roots) > 1 and path.startswith(INSIDE)
    above, _, name = path.removeprefix(INSIDE if outside else "").rpartition("/")
    root = roots[-1 if outside else 0]
    try:
        with closing_fd(root.open_folder(above or ".", create=said[:1] == PUT)) as folder:
            if said[:1] == REMOVE:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
            else:
                mode = stat.S_IMODE(os.fstat(opened[0]).st_mode) & 0o777
                with temporary_in(folder) as temporary:
                    copy_to_new(opened[0], folder, temporary, mode)
                    os.rename(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError as exc:
        return FAILED + str(exc).encode()
    return DONE
