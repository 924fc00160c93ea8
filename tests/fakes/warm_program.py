"""Imports Duckflow once and forks for each start, so that a start costs only a fork; `warm` talks to it.

It has one thread, and prepares only what is the same everywhere: the forked program itself looks at the
environment, the folder and the language, as after a plain start. Only the test for a working sandbox
is not repeated.
"""

import atexit
import gc
import importlib
import io
import json
import os
import pkgutil
import runpy
import select
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

_LATER = ("__main__", ".sandbox.child", "worker", "cli.main", "cli.flags", "cli.commands")
"""Not imported: other programs, and modules that choose a language as soon as they are imported."""
_HEAVY = ("cli.editors", "fleet", "llm.wire.pydantic_ai", "tools.mcp.client")
"""Not imported: modules that few tests need."""
_WITH_COMMAND = {"acp": "duckflow.cli.editors.agent", "fleet": "duckflow.fleet.worker"}
"""Modules imported with the first start of a command."""
_ALSO = ("concurrent.futures.thread", "platformdirs.unix", "typer")
"""Modules that most commands import later."""
_SAVED = [(stream.encoding, stream.errors) for stream in (sys.stdin, sys.stdout, sys.stderr)]


def _import_product() -> None:
    importlib.import_module("duckflow.cli")  # first of all, as in a plain start
    for module in pkgutil.walk_packages(sys.modules["duckflow"].__path__, "duckflow."):
        if not any(part in module.name for part in (*_LATER, *_HEAVY)):
            importlib.import_module(module.name)
    for name in _ALSO:
        importlib.import_module(name)
    _build_models(importlib.import_module("pydantic").BaseModel)
    _make_ready()


def _make_ready() -> None:
    assert threading.active_count() == 1, "a fork copies one thread only"
    assert tempfile.tempdir is None, "something looked for the folder of temporary files"
    gc.collect()
    gc.freeze()


def _import_for(words: list[str]) -> None:
    module = _WITH_COMMAND.get(words[2]) if words[:2] == ["-m", "duckflow"] and words[2:] else None
    if module is not None and module not in sys.modules:
        importlib.import_module(module)
        _make_ready()


def _build_models(model: Any) -> None:
    """Build Duckflow's models now, which otherwise happens on first use in each process."""
    for one in model.__subclasses__():
        if one.__module__.startswith("duckflow."):
            one.model_rebuild()
        _build_models(one)


class _Server:
    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        self._ended, wake = socket.socketpair()
        wake.setblocking(False)
        self._ended.setblocking(False)
        self._wake = wake
        self._channels: dict[int, socket.socket] = {}
        if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell ignores it for background jobs
            signal.signal(signal.SIGINT, signal.SIG_DFL)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake.fileno())

    def serve(self) -> dict[str, Any] | None:
        """Fork for every order. Return the order in the forked program, None at the end of the server."""
        while True:
            ready, _, _ = select.select([self._orders, self._ended], [], [])
            if self._ended in ready:
                self._report_ended()
            if self._orders in ready:
                _, descriptors, _, _ = socket.recv_fds(self._orders, 1, 4)
                if not descriptors:
                    return None
                order = self._start(socket.socket(fileno=descriptors[0]), descriptors[1:])
                if order is not None:
                    return order

    def _report_ended(self) -> None:
        with_more = True
        while with_more:
            try:
                with_more = bool(self._ended.recv(4096))
            except BlockingIOError:
                with_more = False
        while self._channels:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if not pid:
                return
            with self._channels.pop(pid) as channel:
                channel.sendall(b"%d\n" % status)

    def _start(self, channel: socket.socket, streams: list[int]) -> dict[str, Any] | None:
        with channel.makefile("rb") as line:
            order = json.loads(line.readline())
        _import_for(order["words"])
        pid = os.fork()
        if not pid:
            for one in (channel, self._orders, self._ended, self._wake, *self._channels.values()):
                one.detach()
            _become(order, streams)
            return order
        self._channels[pid] = channel
        for stream in streams:
            os.close(stream)
        channel.sendall(b"%d\n" % pid)
        return None


def _become(order: dict[str, Any], streams: list[int]) -> None:
    """Set up the process as a plain start would: session, terminal, folder, environment, streams, signals."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    if order["session"]:
        os.setsid()
    if order["terminal"]:
        import fcntl  # noqa: PLC0415 - few need them
        import termios  # noqa: PLC0415

        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    if order["folder"] is not None:
        os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    remember_sandboxes(_sandboxes(order["sandboxes"]))
    sys.stdin, sys.stdout, sys.stderr = map(_open, (0, 1, 2), ("r", "w", "w"), _SAVED)
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr


def remember_sandboxes(found: dict[str, Any]) -> None:
    """Let the probe look up these sandboxes by setting and disk, because a trial needs a launcher."""
    probe = importlib.import_module("duckflow.safety.sandbox.probe").PROBE
    find = probe.find

    async def find_once(choice: str, launcher: Any, workspace: Path, open_copies: Any) -> Any:
        if not workspace.exists():
            return await find(choice, launcher, workspace, open_copies)
        known = f"{choice} {workspace.stat().st_dev} {open_copies is not None}"
        if known not in found:
            found[known] = await find(choice, launcher, workspace, open_copies)
        return found[known]

    probe.find = find_once


def _sandboxes(known: dict[str, dict[str, object]]) -> dict[str, Any]:
    sandbox = importlib.import_module("duckflow.safety.sandbox.view.levels").Sandbox
    return {key: sandbox.model_validate(one) for key, one in known.items()}


def _open(number: int, mode: str, saved: tuple[str, str]) -> io.TextIOWrapper:
    """Open a stream as Python does at its start; PYTHONUNBUFFERED applies to output only."""
    at_once = bool(os.environ.get("PYTHONUNBUFFERED")) and number > 0
    raw = open(number, f"{mode}b", 0 if at_once else -1, closefd=False)  # noqa: SIM115 - as long as the program
    lines = not at_once and (number == 2 or os.isatty(number))
    return io.TextIOWrapper(raw, *saved, line_buffering=lines, write_through=at_once)


def _run(words: list[str]) -> None:
    if words[:2] == ["-m", "duckflow"]:
        from duckflow.cli import main  # noqa: PLC0415 - imported long ago

        sys.argv = [sys.modules["duckflow"].__path__[0] + "/__main__.py", *words[2:]]
        globals()["__package__"] = "duckflow"  # the help shows by it how the program was started
        main()
    else:
        sys.argv = words
        runpy.run_path(words[0], run_name="__main__")


class _End:
    """Ends as Python does, without freeing the imported modules, which takes as long as a command."""

    def __init__(self) -> None:
        self.code: int | None = None
        """Exit code of a program that has ended in order."""
        atexit.register(self)  # registered first, so it is called last

    def __call__(self) -> None:
        if self.code is None:
            return
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            return  # Python reports it
        os._exit(self.code & 0xFF)


if __name__ == "__main__":
    end = _End()
    _import_product()
    wanted = _Server(socket.socket(fileno=int(sys.argv[1]))).serve()
    if wanted is not None:
        try:
            _run(wanted["words"])
        except SystemExit as left:
            if left.code is None or isinstance(left.code, int):
                end.code = left.code or 0
            raise
