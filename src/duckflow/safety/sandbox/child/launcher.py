"""Launcher: a small process beside Duckflow that forks a supervisor for each command.

Forking Duckflow itself would copy its threads' locks and all its memory, and starting a new Python costs more
than a typical command. One supervisor is always forked in advance and waits for the next order. The launcher
ends when Duckflow does, and then removes the temporary folder of the commands. Standard library only.
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
from duckflow.safety.sandbox.child.cgroups import enter_memory_group, remove_memory_groups
from duckflow.safety.sandbox.child.command_process import CommandProcess
from duckflow.safety.sandbox.child.process_tree import end_process_tree, kill, process_tree, reap
from duckflow.safety.sandbox.child.supervisor import supervise
from duckflow.safety.syscalls import adopt_orphans

_END = b"e"
_NEXT = {b"n": "none", b"w": "namespaces", b"l": "landlock"}
_WORDS = {kind: word for word, kind in _NEXT.items()}
"""Messages of a supervisor that has received its order: fork the next one, and prepare this sandbox kind."""

_PATIENCE_S = 0.5
"""Longest time in seconds that Duckflow's exit waits for the removal of the temporary folder."""

_LEAST, _MOST = 2, 3
"""Smallest and largest number of descriptors in an order."""


class _Launcher:
    """Keeps one supervisor waiting until no more orders can arrive."""

    def __init__(self, orders: socket.socket, temporary: str) -> None:
        self._orders = orders
        self._temporary = temporary
        self._heard, self._told = os.pipe()
        self._supervisors: set[int] = set()
        self._waiting = 0
        signal.signal(signal.SIGCHLD, self._reap)

    def serve(self) -> None:
        """Fork the next supervisor whenever the waiting one has received its order."""
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
        """Kill the processes that a killed supervisor left; the launcher has become their parent."""
        kept = self._supervisors.union(*(process_tree(process) for process in self._supervisors))
        for process in process_tree(os.getpid()):
            if process not in kept:
                kill(process)


def _be_supervisor(orders: socket.socket, told: int, ahead: str, temporary: str) -> NoReturn:
    """Wait for an order with its descriptors, then run it. `ahead` is the kind of sandbox to prepare."""

    def begun(kind: str) -> None:
        os.write(told, _WORDS[kind])

    status = 1
    try:
        adopt_orphans()
        memory = enter_memory_group()
        prepared = CommandProcess(ahead, temporary, expecting=True) if ahead != "none" else None
        said, opened, _, _ = socket.recv_fds(orders, 16, _MOST)
        orders.close()
        if len(opened) >= _LEAST:
            for one in opened:
                os.set_inheritable(one, False)
            supervise(socket.socket(fileno=opened[0]), opened[1:], begun, prepared, memory)
        else:
            os.write(told, _WORDS["none"] if said else _END)
        end_process_tree({})  # a process prepared for the next command may still be there
        status = 0
    finally:
        os._exit(status)


def main() -> None:
    """Serve orders from the socket in argument 2. Argument 3 is the folder to remove at the end."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    adopt_orphans()
    gc.disable()  # each fork lives for one command, and collecting would copy the memory it shares
    if seccomp.supported():  # assembled before the first fork, so that every child has the filters
        for sockets in ((), seccomp.ON_THE_NETWORK, seccomp.IN_A_NAMESPACE):
            seccomp.assemble(sockets)
    orders = socket.socket(fileno=int(sys.argv[2]))
    orders.set_inheritable(False)
    _Launcher(orders, sys.argv[3]).serve()
    remove_memory_groups()
    import shutil  # noqa: PLC0415 - loads many archive modules, and the first command waits for the start

    remove_in_time(lambda: shutil.rmtree(sys.argv[3], ignore_errors=True))


def remove_in_time(remove: Callable[[], None]) -> None:
    """Remove the files of a session. If that takes long, a child process continues after this one ends."""
    removed, removing = os.pipe()
    if os.fork() == 0:
        os.close(removed)
        try:
            remove()
        finally:
            os._exit(0)
    os.close(removing)
    select.select([removed], [], [], _PATIENCE_S)
