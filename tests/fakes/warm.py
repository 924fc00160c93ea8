"""Forks the program instead of starting it, for tests that are not about the start.

A process of this worker has Duckflow imported and forks (`warm_program`). The result is the same as after
`subprocess`: streams, folder, environment, session, exit code, signals; only the parent process differs.
"""

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from fakes import known_sandbox, warm_program

_LOCK = threading.Lock()
_NUMBERS = {"stdin": 0, "stdout": 1, "stderr": 2}


def _interpreter(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that Python reads at its start; if any differs, the program is not forked."""
    locales = (environment.get(name) for name in ("LC_ALL", "LC_CTYPE", "LANG"))
    own = {name: value for name, value in environment.items() if name.startswith("PYTHON")}
    return {**own, "locale": next(filter(None, locales), "")}


class _Server:
    """The process that forks, created for the first start."""

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


class Program:
    """A forked program, with as much of `subprocess.Popen` as tests use, plus `terminal`."""

    def __init__(
        self,
        command: list[str],
        *,
        terminal: bool = False,
        cwd: Path | str | None = None,
        env: Mapping[str, str] | None = None,
        text: bool = False,
        encoding: str | None = None,
        start_new_session: bool = False,
        **streams: Any,
    ) -> None:
        assert command[0] == sys.executable
        assert set(streams) <= set(_NUMBERS)
        self.args = command
        self.returncode: int | None = None
        self._waiting = threading.Lock()
        order = {
            "words": [str(word) for word in command[1:]],
            "folder": str(cwd or Path.cwd()),
            "environment": dict(os.environ if env is None else env),
            "session": start_new_session,
            "terminal": terminal,
            "sandboxes": known_sandbox.known_sandboxes(Path.home()),
        }
        self._text = {"encoding": encoding or "utf-8"} if text or encoding else None
        self._ends: list[Any] = []
        theirs = [self._stream(name, streams.get(name)) for name in _NUMBERS]
        self._channel, channel = socket.socketpair()
        with channel:
            socket.send_fds(_server().orders, [b"+"], [channel.fileno(), *theirs])
        self._channel.sendall(json.dumps(order).encode() + b"\n")
        self.pid = int(self._line())
        for end in self._ends:
            os.close(end)

    def _stream(self, name: str, wanted: Any) -> int:
        """Return the program's end of a stream, and keep the test's end of a pipe."""
        ours: Any = None
        theirs = wanted.fileno() if hasattr(wanted, "fileno") else wanted
        if wanted is None:
            theirs = _NUMBERS[name]
        elif wanted == subprocess.DEVNULL:
            theirs = os.open(os.devnull, os.O_RDWR)
            self._ends.append(theirs)
        elif wanted == subprocess.PIPE:
            to_read, to_write = os.pipe()
            theirs, left = (to_read, to_write) if name == "stdin" else (to_write, to_read)
            self._ends.append(theirs)
            mode = "w" if name == "stdin" else "r"
            ours = os.fdopen(left, mode, **self._text) if self._text else os.fdopen(left, f"{mode}b")
        setattr(self, name, ours)
        return theirs

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._open_streams():
            with suppress(BrokenPipeError):
                stream.close()
        self.wait()

    def _open_streams(self) -> list[Any]:
        streams = (getattr(self, name) for name in _NUMBERS)
        return [stream for stream in streams if stream is not None and not stream.closed]

    def _line(self) -> bytes:
        read = b""
        while not read.endswith(b"\n"):
            read += self._channel.recv(1) or b"the process that forks is gone\n"
        return read

    def poll(self) -> int | None:
        """Return the exit code if the program has ended."""
        with suppress(subprocess.TimeoutExpired):
            self.wait(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the program's end; return its exit code, negative for a signal."""
        with self._waiting:
            if self.returncode is None:
                if not select.select([self._channel], [], [], timeout)[0]:
                    raise subprocess.TimeoutExpired(self.args, timeout or 0)
                self.returncode = os.waitstatus_to_exitcode(int(self._line()))
                self._channel.close()
            return self.returncode

    def communicate(self, told: Any = None, timeout: float | None = None) -> tuple[Any, Any]:
        """Write the input, and read both streams to their ends."""
        deadline = time.monotonic() + (1e6 if timeout is None else timeout)
        read: dict[str, Any] = {"stdout": None, "stderr": None}

        def read_all(name: str) -> None:
            with getattr(self, name) as stream:
                read[name] = stream.read()

        names = [name for name in read if getattr(self, name) is not None]
        threads = [threading.Thread(target=read_all, args=[name], daemon=True) for name in names]
        for thread in threads:
            thread.start()
        if told is not None:
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(told)
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0))
            if thread.is_alive():
                raise subprocess.TimeoutExpired(self.args, timeout or 0)
        self.wait(max(deadline - time.monotonic(), 0))
        return read["stdout"], read["stderr"]

    def send_signal(self, number: int) -> None:
        """Send a signal to the program, unless it has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the program."""
        self.send_signal(signal.SIGKILL)


def start(command: list[str], *, terminal: bool = False, **options: Any) -> Any:
    """Fork `[sys.executable, "-m", "duckflow", …]` or a script; return a `Popen` if it can't be forked."""
    if _interpreter(options.get("env") or os.environ) == _server().interpreter:
        return Program(command, terminal=terminal, **options)
    assert not terminal
    return subprocess.Popen(command, **options)


def run(command: list[str], **options: Any) -> subprocess.CompletedProcess[Any]:
    """Do the same as `subprocess.run`, with a forked program."""
    told, limit, check = options.pop("input", None), options.pop("timeout", None), options.pop("check", False)
    if told is not None:
        options["stdin"] = subprocess.PIPE
    if options.pop("capture_output", False):
        options |= {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with start(command, **options) as process:
        try:
            out, err = process.communicate(told, limit)
        except BaseException:
            process.kill()
            raise
    done = subprocess.CompletedProcess(command, process.returncode, out, err)
    if check:
        done.check_returncode()
    return done
