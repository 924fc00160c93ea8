"""Run a program outside the sandbox, with limits for its time and output. Its child processes end with it."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_GRACE_S = 2.0
"""Time to wait for output after the program's end, if a background process still has the pipe open."""

_POLL_S = 0.005


class ProgramEnd(NamedTuple):
    """Exit code and output of a program. `complete` is False if some of its output was dropped."""

    exit_code: int
    output: bytes
    errors: bytes
    complete: bool


async def run_program(
    command: list[str],
    given: bytes,
    *,
    seconds: float,
    most: int,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    stops: bool = True,
) -> ProgramEnd:
    """Run a program, by default with an empty environment. Raise OSError or TimeoutError if that fails.

    With `stops`, a program that writes more than `most` bytes is killed.
    """
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=cwd,
        env=dict(env or {}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )

    async def give() -> None:
        assert process.stdin
        with suppress(ConnectionError):  # a program need not read its input
            process.stdin.write(given)
            await process.stdin.drain()
        process.stdin.close()

    async def read(stream: asyncio.StreamReader | None, kept: bytearray, *, stops: bool) -> None:
        """Read to the end, so that the program can end, but keep only one byte more than allowed."""
        while stream is not None and (piece := await stream.read(65_536)):
            kept += piece[: most + 1 - len(kept)]
            if len(kept) > most and stops:
                _kill(process)

    output, errors = bytearray(), bytearray()
    reading = read(process.stdout, output, stops=stops), read(process.stderr, errors, stops=False)
    talking = [asyncio.create_task(one) for one in (*reading, give())]
    try:
        async with asyncio.timeout(seconds):
            code = await _exit_code(process)
            if (await asyncio.wait(talking, timeout=_GRACE_S))[1]:
                _kill(process)
        return ProgramEnd(code, bytes(output[:most]), bytes(errors[:most]), len(output) <= most)
    finally:
        for task in talking:
            task.cancel()
        if process.returncode is None:
            _kill(process)
            await asyncio.shield(_exit_code(process))
        # There is no other way to close pipes that a background process may hold open.
        process._transport.close()  # pyright: ignore


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """Return the exit code as soon as it is known. `wait` alone also waits for background processes."""
    waiting = asyncio.ensure_future(process.wait())
    try:
        while process.returncode is None:
            await asyncio.wait([waiting], timeout=_POLL_S)
    finally:
        waiting.cancel()
    return process.returncode


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
