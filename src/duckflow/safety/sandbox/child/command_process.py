"""Process that is forked in advance and becomes a command: how to start and end it. Standard library only."""

import contextlib
import json
import os
import select
import signal
import socket
from typing import Any

from duckflow.safety.sandbox.child.prepared_process import GO, ChildLines, prepare
from duckflow.safety.sandbox.child.process_tree import kill
from duckflow.safety.sandbox.child.wire import send
from duckflow.safety.syscalls import die_with_parent

EXPECTED = "mounts"
"""File in the temporary folder that lists the mounts every command gets."""

_PATIENCE_S = 10.0
_WARDENS_TIME_S = 2.0


def preparation_for(order: dict[str, Any]) -> str:
    """Return the kind of sandbox to prepare for orders like this one, "none" if it can't be prepared."""
    return "none" if order["kind"] == "bubblewrap" else order["kind"]


class CommandProcess:
    """Process that waits for an order and then becomes the ordered command.

    Through `news` it sends a descriptor for answering renames and one that keeps its mounts. `_info` and
    `_gate` are for bubblewrap: the id of its child, and the byte that lets the command begin. With Landlock,
    `_gate` ends the warden.
    """

    def __init__(
        self,
        kind: str,
        temporary: str,
        *,
        own_network: bool = True,
        own_users: bool | None = None,
        expecting: bool = False,
    ) -> None:
        self._kind = kind
        self._ahead = _expected(temporary) if expecting and kind == "namespaces" else []
        self.news, theirs = socket.socketpair()
        self._failed, failing = os.pipe()
        self._info, saying = os.pipe()
        self._waits, self._gate = os.pipe()
        self._init: int | None = None
        self._ran = kind
        lines = ChildLines(theirs, failing, saying, self._waits)
        users = os.geteuid() != 0 if own_users is None else own_users
        parent = os.getpid()
        self.process = os.fork()
        if self.process == 0:
            die_with_parent(parent)
            prepare(kind, lines, temporary, self._ahead, own_network=own_network, own_users=users)
        for one in (theirs.detach(), failing, saying):
            os.close(one)
        if kind == "namespaces":
            self._take_first()

    def _take_first(self) -> None:
        """Continue with the child of the forked process, which is the first process of the new namespaces."""
        os.waitpid(self.process, 0)
        said = os.read(self._info, 20)
        self.process = int(said or 0)
        if said:
            with contextlib.suppress(OSError):  # it has already ended
                self._init = os.pidfd_open(self.process)
            with contextlib.suppress(OSError):
                self.news.sendall(GO)

    def fits(self, order: dict[str, Any]) -> bool:
        """Return whether a command with this order can run in the prepared process."""
        same = order["mounts"][: len(self._ahead)] == self._ahead
        return same and self._kind == preparation_for(order) and not order["held"] and not order["network"]

    def run(self, order: dict[str, Any], data: bytes, opened: list[int]) -> None:
        """Let the process become the command. Closes `opened`: its output and, with Landlock, its rules."""
        self._ran = order["kind"]
        with contextlib.suppress(OSError):  # `failure` reports the reason
            send(self.news, data, opened)
        for one in opened:
            os.close(one)
        if self._ran == "bubblewrap":
            self._let_in()

    def failure(self) -> str:
        """Return why the command could not start, or an empty text if it did."""
        said = os.read(self._failed, 4000).decode(errors="replace")
        if not said and self._ran == "bubblewrap" and select.select([self._waits], [], [], 0)[0]:
            return "bubblewrap could not set up the sandbox"  # the byte that lets the command begin is unread
        return said

    def kill(self, ended: dict[int, int]) -> None:
        """End the command, first through its namespace or warden, which ends all its processes at once."""
        if self._ran == "landlock" and self.process not in ended:
            os.write(self._gate, b".")
            with contextlib.suppress(OSError):
                select.select([os.pidfd_open(self.process)], [], [], _WARDENS_TIME_S)
        if self._init is not None:
            with contextlib.suppress(OSError):
                signal.pidfd_send_signal(self._init, signal.SIGKILL)
            select.select([self._init], [], [], _PATIENCE_S)
        if self.process not in ended:
            kill(self.process)

    def _let_in(self) -> None:
        """Wait until bubblewrap is ready, keep a handle of its first process, and let the command begin."""
        said = b""
        while not said.rstrip().endswith(b"}"):
            ready, _, _ = select.select([self._info], [], [], _PATIENCE_S)
            more = os.read(self._info, 4000) if ready else b""
            if not more:
                break
            said += more
        if said:
            with contextlib.suppress(OSError):  # it has already ended
                first = json.loads(said)["child-pid"]
                self._init = os.pidfd_open(first)
                os.open(f"/proc/{first}/ns/mnt", os.O_RDONLY | os.O_CLOEXEC)  # kept open until the end
        os.write(self._gate, b".")


def _expected(temporary: str) -> list[dict[str, Any]]:
    try:
        with open(f"{temporary}/{EXPECTED}", encoding="ascii") as file:
            return json.load(file)
    except OSError:
        return []
