"""The process of an embedded model, seen from Duckflow: started, spoken with line by line, ended."""

import asyncio
import json
import os
import socket
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

LONGEST_LINE = 16 * 1024 * 1024
PRINTED_BYTES = 64 * 1024
GRACE_S = 5.0
WORKER = Path(__file__).with_name("worker.py")

_KEPT = ("PATH", "HOME", "LANG", "TZ", "TMPDIR", "LD_LIBRARY_PATH")
_KEPT_KINDS = ("LC_", "PYTHON", "OMP_", "GGML_", "LLAMA_", "CUDA_", "HIP_", "VK_")
"""What Python and the runtime look at. Keys of providers are not among it."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class WorkerGone(Exception):
    """The process ended by itself."""


class WorkerProcess:
    """One process with one model. It loads `settings` from the start on; nothing here waits for that."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._socket, theirs = socket.socketpair()
        self._errors = TemporaryFile()  # noqa: SIM115 - open as long as the process, closed with it
        with theirs:
            self._process = _spawn(theirs.fileno(), self._errors)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._socket.sendall(_encode(settings))

    async def connect(self) -> None:
        """Make ready to talk. A process that can't be talked to is ended."""
        try:
            self._streams = await asyncio.open_unix_connection(sock=self._socket, limit=LONGEST_LINE)
        except BaseException:
            await self.end()
            raise

    def send(self, message: dict[str, Any]) -> None:
        """Put a message on its way."""
        assert self._streams is not None
        self._streams[1].write(_encode(message))

    async def receive(self) -> dict[str, Any]:
        """The next message."""
        assert self._streams is not None
        try:
            line = await self._streams[0].readline()
        except (ConnectionError, ValueError) as exc:
            raise WorkerGone from exc
        if not line.endswith(b"\n"):
            raise WorkerGone
        return json.loads(line)

    async def end(self) -> None:
        """Stop it and give back its memory."""
        # It has nothing to save, and while it loads it would not hear anything gentler.
        self._process.kill()
        await self.look_back()

    async def look_back(self) -> tuple[int, str]:
        """After its end: the exit status, negative for a signal, and what was printed last."""
        if self._streams is not None:
            self._streams[1].close()
        self._socket.close()
        status = await asyncio.to_thread(_wait, self._process)
        printed = "" if self._errors.closed else _tail(self._errors)
        self._errors.close()
        return status, printed


def _encode(message: dict[str, Any]) -> bytes:
    # Half a surrogate pair, as broken files have them, has no UTF-8, and the runtime would refuse it escaped.
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _spawn(descriptor: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    seen = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_KINDS)
    }
    # -P and the folder: nothing of the project in the current folder is imported.
    # A session of its own: Ctrl-C in the terminal is for Duckflow.
    return subprocess.Popen(  # noqa: S603
        [sys.executable, "-P", str(WORKER), str(descriptor)],
        cwd=WORKER.anchor,
        env=seen,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=(descriptor,),
        start_new_session=True,
    )


def _wait(process: subprocess.Popen[bytes]) -> int:
    """The exit status, once it has one."""
    try:
        return process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _tail(file: IO[bytes]) -> str:
    size = file.seek(0, 2)
    file.seek(max(size - PRINTED_BYTES, 0))
    return file.read().decode("utf-8", "replace")


def usable_cores(quota: Path = _QUOTA) -> int:
    """Cores this process may use; in a container often fewer than the machine has."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text(encoding="ascii").split()
        return max(1, min(cores, int(allowed) // int(period)))
    except (OSError, ValueError):  # no such limit, or "max"
        return cores


def thread_counts(cores: int, wanted: int | None) -> tuple[int, int]:
    """Threads for writing and for reading the prompt."""
    if wanted is not None:
        return wanted, wanted
    # One core left free keeps the speed steady, but of two it would be half of the speed.
    return (cores if cores <= 2 else cores - 1), cores
