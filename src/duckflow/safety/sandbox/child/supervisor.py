"""Supervisor of one command: starts it in its sandbox, watches it, and ends it with all its processes.

The order arrives through a socket. When that socket closes, the requesting process is gone, and the
supervisor ends the command. Standard library only.
"""

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable
from typing import Any

from duckflow.safety.sandbox.child.cgroups import MemoryGroup, enter_memory_group
from duckflow.safety.sandbox.child.command_process import CommandProcess, preparation_for
from duckflow.safety.sandbox.child.file_attributes import FileAttributes
from duckflow.safety.sandbox.child.folder_moves import FolderMoves
from duckflow.safety.sandbox.child.prepared_process import ATTRIBUTES, GATEWAY
from duckflow.safety.sandbox.child.process_tree import end_process_tree, exit_code, reap
from duckflow.safety.sandbox.child.resource_use import ResourceUse
from duckflow.safety.sandbox.child.shared_namespaces import hold
from duckflow.safety.sandbox.child.wire import receive
from duckflow.safety.syscalls import LINUX

_TICK_MS = 50
_MB = 1_000_000
_OWN_BYTES = 16_000_000
"""Memory for this process, which is in the same cgroup as the command."""


def supervise(
    control: socket.socket,
    opened: list[int],
    begun: Callable[[str], object],
    prepared: CommandProcess | None = None,
    memory: MemoryGroup | None = None,
) -> None:
    """Run the requested command and report how it ended. `opened` are its output and Landlock rules.

    `memory` is the cgroup of this process and so of the command, where the user may make one.
    """
    order, data, _ = receive(control)
    if order is None:
        begun("none")
        return
    if order["kind"] == "hold":
        begun("none")
        for one in opened:
            os.close(one)
        hold(
            control,
            order,
            lambda asked, written: supervise(asked, written, lambda _: None, memory=enter_memory_group()),
        )
        return
    ended: dict[int, int] = {}
    try:
        if prepared is None or not prepared.fits(order):
            # Shared mounts are already inside a user namespace.
            users, kind = False if order["held"] else None, preparation_for(order)
            network = not order["network"]
            prepared = CommandProcess(kind, order["temporary"], own_network=network, own_users=users)
        if memory is not None:
            memory.limit(order["limits"]["memory_mb"] * _MB + _OWN_BYTES)
        prepared.run(order, data, opened)
        begun(preparation_for(order))
        usage = ResourceUse(order)
        stopped = _watch(prepared, control, order, usage, ended)
        prepared.kill(ended)
        gone = end_process_tree(ended) if LINUX else _end_group(prepared.process, ended)
        status = ended.get(prepared.process)
        code = None if status is None else exit_code(status)
        ending = {"stopped": stopped, "code": code, "error": prepared.failure()}
        if stopped is None and memory is not None and memory.reached():
            ending |= {"stopped": "memory_mb", "code": None}
        elif stopped is None and usage.left_too_much():
            ending["stopped"] = "disk_mb"
        if not gone:
            ending["error"] = "some of its processes could not be ended"
    except OSError as exc:
        end_process_tree(ended)
        why = prepared.failure() if prepared is not None else ""
        ending = {"stopped": None, "code": None, "error": why or f"it could not be started: {exc}"}
    with contextlib.suppress(OSError):  # the receiver has ended
        control.sendall(json.dumps(ending).encode())


def _watch(
    command: CommandProcess,
    control: socket.socket,
    order: dict[str, Any],
    usage: ResourceUse,
    ended: dict[int, int],
) -> str | None:
    """Wait until the command ends. Return None, or why it must be ended: the exceeded limit or "asked"."""
    until = time.monotonic() + order["limits"]["seconds"]
    copied = [one["lower"] for one in order["copies"]]
    poll = select.poll()
    for opened in (control, command.news) if order["kind"] != "none" else (control,):
        poll.register(opened, select.POLLIN)
    with contextlib.suppress(OSError, AttributeError):  # macOS lacks this; then each tick checks
        poll.register(os.pidfd_open(command.process), select.POLLIN)
    held: FolderMoves | FileAttributes | None = None
    looked = 0.0
    while True:
        ready = dict(poll.poll(_TICK_MS))
        if control.fileno() in ready:
            return "asked"
        if command.news.fileno() in ready:
            word, kept, _, _ = socket.recv_fds(command.news, 1, 2)
            if not word:
                poll.unregister(command.news)
            elif word == GATEWAY:
                socket.send_fds(control, [word], kept)
                os.close(kept[0])
            elif word == ATTRIBUTES:
                held = FileAttributes(kept[0], order["writable"])
                poll.register(held.listener, select.POLLIN)
            elif len(kept) > 1:  # the first descriptor keeps the mounts until the end
                held = FolderMoves(kept[1], copied)
                poll.register(held.listener, select.POLLIN)
        if held is not None and (asked := ready.get(held.listener)):
            if asked & select.POLLIN:
                held.answer()
            else:
                poll.unregister(held.listener)  # all processes that could make a call have ended
            if time.monotonic() - looked < _TICK_MS / 1000:
                continue
        looked = time.monotonic()
        reap(ended)
        if command.process in ended:
            return None
        if looked > until:
            return "seconds"
        if reached := usage.reached():
            return reached


def _end_group(process: int, ended: dict[int, int]) -> bool:
    """On systems without /proc, kill at least the process group of the command."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        if process not in ended:
            ended[process] = os.waitpid(process, 0)[1]
    return True
