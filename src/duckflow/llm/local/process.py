"""Duckflow's side of an embedded model's process: start it, exchange lines of JSON with it, end it."""

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
"""Prefixes of environment variables that Python and the runtime read. Provider keys do not match."""
_QUOTA = Path("/sys/fs/cgroup/cpu.max")


class WorkerGone(Exception):
    """Raised when the process has ended unexpectedly."""


class WorkerProcess:
    """One process with one model. It starts to load the model of `settings` at once, in the background."""

    def __init__(self, settings: dict[str, Any]) -> None:
        self._socket, theirs = socket.socketpair()
        self._errors = TemporaryFile()  # noqa: SIM115 - stays open until the process ends
        with theirs:
            self._process = _spawn(theirs.fileno(), self._errors)
        self._streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None
        self._socket.sendall(_encode(settings))

    async def connect(self) -> None:
        """Open the connection to the process. End the process if that fails."""
        try:
            self._streams = await asyncio.open_unix_connection(sock=self._socket, limit=LONGEST_LINE)
        except BaseException:
            await self.end()
            raise

    def send(self, message: dict[str, Any]) -> None:
        """Send a message without waiting for its delivery."""
        assert self._streams is not None
        self._streams[1].write(_encode(message))

    async def receive(self) -> dict[str, Any]:
        """Return the next message."""
        assert self._streams is not None
        try:
            line = await self._streams[0].readline()
        except (ConnectionError, ValueError) as exc:
            raise WorkerGone from exc
        if not line.endswith(b"\n"):
            raise WorkerGone
        return json.loads(line)

    async def end(self) -> None:
        """Kill the process, which frees its memory."""
        # It has nothing to save, and would not react to a gentler signal while it loads.
        self._process.kill()
        await self.look_back()

    async def look_back(self) -> tuple[int, str]:
        """Wait for the process to end. Return its exit status (negative for a signal) and its last output."""
        if self._streams is not None:
            self._streams[1].close()
        self._socket.close()
        status = await asyncio.to_thread(_wait, self._process)
        if self._errors.closed:
            return status, ""
        with self._errors as errors:
            size = errors.seek(0, 2)
            errors.seek(max(size - PRINTED_BYTES, 0))
            return status, errors.read().decode("utf-8", "replace")


def _encode(message: dict[str, Any]) -> bytes:
    # Lone surrogates, as in broken files, have no UTF-8 form, and the runtime refuses them escaped.
    return json.dumps(message, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


def _spawn(descriptor: int, errors: IO[bytes]) -> subprocess.Popen[bytes]:
    seen = {
        name: value for name, value in os.environ.items() if name in _KEPT or name.startswith(_KEPT_KINDS)
    }
    # -P and the working folder keep Python from importing modules of the user's project.
    # In a new session, Ctrl-C in the terminal reaches only Duckflow.
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
    try:
        return process.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def usable_cores(quota: Path = _QUOTA) -> int:
    """Return the number of cores this process may use; a container may have fewer than the machine."""
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    try:
        allowed, period = quota.read_text(encoding="ascii").split()
        return max(1, min(cores, int(allowed) // int(period)))
    except (OSError, ValueError):  # no quota file, or the quota is "max"
        return cores


def thread_counts(cores: int, wanted: int | None) -> tuple[int, int]:
    """Return two numbers of threads: to generate tokens, and to evaluate the prompt."""
    if wanted is not None:
        return wanted, wanted
    # Leaving one core free keeps the speed steady, but with only two cores it would halve the speed.
    return (cores if cores <= 2 else cores - 1), cores
