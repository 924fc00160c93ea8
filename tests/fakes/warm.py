"""Starts of the program for a fork each, where the start itself is not what is tested.

A process of this worker has the product imported and forks (`warm_program`). What comes is the same as after
`subprocess`: streams, folder, environment, session, exit code, signals; only the parent is that process.
"""

import atexit
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fakes import warm_program

_LOCK = threading.Lock()


def _interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """What Python looks at as it starts: where any of it differs, a program gets a start of its own."""
    locales = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    own = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return {**own, "locale": next(filter(None, locales), "")}


class _Server:
    """The process that forks; there is one, from the first start on."""

    def __init__(self) -> None:
        self.interpreter = _interpreter(os.environ)
        self.orders, theirs = socket.socketpair()
        with theirs:
            command = [sys.executable, "-P", warm_program.__file__, str(theirs.fileno())]
            self._process = subprocess.Popen(command, pass_fds=[theirs.fileno()])
        atexit.register(self._end)

    def _end(self) -> None:
        self.orders.close()
        self._process.wait()


_servers: list[_Server] = []


def _server() -> _Server:
    with _LOCK:
        if not _servers:
            _servers.append(_Server())
        return _servers[0]


class Program(subprocess.Popen[Any]):
    """`subprocess.Popen` for `[sys.executable, "-m", "duckflow", …]` or a script; `terminal` is its own."""

    def __init__(self, command: list[str], *, terminal: bool = False, **options: Any) -> None:
        assert command[0] == sys.executable
        assert not {"preexec_fn", "pass_fds", "shell", "executable"}.intersection(options)
        self._order: dict[str, Any] = {
            "words": [str(word) for word in command[1:]],
            "folder": str(options["cwd"]) if options.get("cwd") else str(Path.cwd()),
            "environment": dict(os.environ if options.get("env") is None else options["env"]),
            "session": bool(options.get("start_new_session")),
            "terminal": terminal,
        }
        self._channel: socket.socket | None = None
        self._warm = _interpreter(self._order["environment"]) == _server().interpreter
        assert self._warm or not terminal
        super().__init__(command, **options)

    def _execute_child(self, *given: Any) -> None:
        if not self._warm:
            super()._execute_child(*given)
            return
        ends = given[10:16]
        streams = ((0, ends[0]), (1, ends[3]), (2, ends[5]))
        child = [own if end == -1 else end for own, end in streams]
        self._channel, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(_server().orders, [b"+"], [theirs.fileno(), *child])
        self._channel.sendall(json.dumps(self._order).encode() + b"\n")
        self.pid = int(self._line())
        self._child_created = True
        self._close_pipe_fds(*ends)

    def _line(self) -> bytes:
        assert self._channel is not None
        read = b""
        while not read.endswith(b"\n"):
            read += self._channel.recv(1) or b"the process that forks is gone\n"
        return read

    def _try_wait(self, wait_flags: int) -> tuple[int, int]:
        if self._channel is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG:
            self._channel.setblocking(False)
            try:
                self._channel.recv(1, socket.MSG_PEEK)
            except BlockingIOError:
                return 0, 0
            finally:
                self._channel.setblocking(True)
        status = int(self._line())
        self._channel.close()
        return self.pid, status

    def _internal_poll(self, *_: Any, **__: Any) -> int | None:
        if self.returncode is None and self._waitpid_lock.acquire(blocking=False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """`subprocess.run`, warm."""
    told, limit, check = options.pop("input", None), options.pop("timeout", None), options.pop("check", False)
    if told is not None:
        options["stdin"] = subprocess.PIPE
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with Program(command, **options) as process:
        try:
            out, err = process.communicate(told, limit)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
