"""The launcher: a small process beside Duckflow that forks a supervisor for each command.

Forking Duckflow itself would copy its threads' locks and all its memory; starting a new Python for each
command costs more than the command. This one is started once, has one thread, and ends when Duckflow does,
however that ends. One supervisor is always forked ahead and waits for the next order. At the end the
temporary folder of the commands is removed. Standard library only.
"""

import contextlib
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from duckflow.safety.sandbox.child import seccomp
from duckflow.safety.sandbox.child.command_process import CommandProcess
from duckflow.safety.sandbox.child.process_tree import kill, process_tree, reap
from duckflow.safety.sandbox.child.supervisor import supervise
from duckflow.safety.syscalls import adopt_orphans

_END = b"e"
_NEXT = {b"n": "none", b"w": "namespaces", b"b": "bubblewrap", b"l": "landlock"}
_WORDS = {kind: word for word, kind in _NEXT.items()}
"""What a supervisor says when it has got its order: the next one is wanted, and what to prepare for it."""

_PATIENCE_S = 0.5
"""How long Duckflow's own end may wait for the removal of the temporary folder."""

_LEAST, _MOST = 2, 3
"""Descriptors of an order."""


class _Launcher:
    """Keeps a supervisor waiting until nobody can give orders any more."""

    def __init__(self, orders: socket.socket, temporary: str) -> None:
        self._orders = orders
        self._temporary = temporary
        self._heard, self._told = os.pipe()
        self._supervisors: set[int] = set()
        self._waiting = 0
        signal.signal(signal.SIGCHLD, self._reap)

    def serve(self) -> None:
        """Fork the next supervisor whenever one has got its order."""
        self._fork()
        while (said := os.read(self._heard, 1)) != _END:
            self._fork(_NEXT[said])
        with contextlib.suppress(ChildProcessError):
            while self._supervisors:
                self._supervisors.discard(os.wait()[0])

    def _fork(self, ahead: str = "none") -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
        process = os.fork()
        if process == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])
            _be_supervisor(self._orders, self._told, ahead, self._temporary)
        self._waiting = process
        self._supervisors.add(process)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGCHLD])

    def _reap(self, _number: int, _frame: FrameType | None) -> None:
        ended: dict[int, int] = {}
        reap(ended)
        killed = [process for process in self._supervisors if ended.get(process)]
        self._supervisors.difference_update(ended)
        if killed:
            self._end_strays()
        if self._waiting in killed:
            os.write(self._told, _WORDS["none"])

    def _end_strays(self) -> None:
        """What a supervisor left that was killed itself has come to us."""
        kept = self._supervisors.union(*(process_tree(process) for process in self._supervisors))
        for process in process_tree(os.getpid()):
            if process not in kept:
                kill(process)


def _be_supervisor(orders: socket.socket, told: int, ahead: str, temporary: str) -> NoReturn:
    """Wait for an order, which is descriptors: the command's own socket, where its output goes, its rules.

    `ahead`: the kind of sandbox that is to be prepared.
    """

    def begun(kind: str) -> None:
        os.write(told, _WORDS[kind])

    status = 1
    try:
        adopt_orphans()
        prepared = CommandProcess(ahead, temporary, expecting=True) if ahead != "none" else None
        said, opened, _, _ = socket.recv_fds(orders, 16, _MOST)
        orders.close()
        if len(opened) >= _LEAST:
            for one in opened:
                os.set_inheritable(one, False)
            supervise(socket.socket(fileno=opened[0]), opened[1:], begun, prepared)
        else:
            os.write(told, _WORDS["none"] if said else _END)
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    """Serve the socket whose number is the second argument; the third is the folder to remove at the end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    gc.disable()  # each fork lives for one command, and collecting would copy what it shares
    if seccomp.supported():  # ready before the first fork, so that every child has them
        for sockets in ((), seccomp.ON_THE_NETWORK, seccomp.IN_A_NAMESPACE):
            seccomp.assemble(sockets)
    orders = socket.socket(fileno=int(sys.argv[2]))
    orders.set_inheritable(False)
    _Launcher(orders, sys.argv[3]).serve()
    import shutil  # noqa: PLC0415 - most of what it loads is for archives, and a command waits for the start

    remove_in_time(lambda: shutil.rmtree(sys.argv[3], ignore_errors=True))


def remove_in_time(remove: Callable[[], None]) -> None:
    """Remove what a session leaves; if that takes long, a process that outlives this one finishes it."""
    removed, removing = os.pipe()
    if os.fork() == 0:
        os.close(removed)
        try:
            remove()
        finally:
            os._exit(0)
    os.close(removing)
    select.select([removed], [], [], _PATIENCE_S)
