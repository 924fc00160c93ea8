"""Running one hook: JSON on standard input, bounded in time and output, ended with all it started."""

import asyncio
import os
import signal
from collections.abc import Mapping
from contextlib import suppress
from typing import NamedTuple

_MOST_BYTES = 100_000
_GRACE_S = 2.0
"""How long output is waited for that something in the background still holds open."""


_LOOK_S = 0.005


class HookEnd(NamedTuple):
    """How a hook ended; without an exit code it could not be started, or took too long."""

    exit_code: int | None
    output: str = ""
    errors: str = ""


class HookShell(NamedTuple):
    """What hooks are run with: the shell, the folder, and an environment without keys."""

    program: str | None
    folder: str
    environment: Mapping[str, str]

    async def run(self, command: str, given: bytes, seconds: float) -> HookEnd:
        """Run a hook to its end."""
        if self.program is None:
            return HookEnd(None, errors="there is no shell")
        try:
            process = await asyncio.create_subprocess_exec(
                *(self.program, "-c", command),
                cwd=self.folder,
                env=dict(self.environment),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except OSError as exc:
            return HookEnd(None, errors=exc.strerror or str(exc))
        try:
            async with asyncio.timeout(seconds):
                return await _talk(process, given)
        except TimeoutError:
            return HookEnd(None, errors=f"it took longer than {seconds:g} s")
        finally:
            await _end(process)


async def _talk(process: asyncio.subprocess.Process, given: bytes) -> HookEnd:
    kept = (bytearray(), bytearray())
    streams = zip((process.stdout, process.stderr), kept, strict=True)
    readers = [asyncio.ensure_future(_read(stream, read)) for stream, read in streams]
    try:
        if process.stdin is not None:
            with suppress(ConnectionError):  # it need not read what it is told
                process.stdin.write(given)
                await process.stdin.drain()
            process.stdin.close()
        code = await _exit_code(process)
        if (await asyncio.wait(readers, timeout=_GRACE_S))[1]:
            _kill(process)
        output, errors = (read.decode("utf-8", "replace").strip() for read in kept)
        return HookEnd(code, output, errors)
    finally:
        for reader in readers:
            reader.cancel()


async def _exit_code(process: asyncio.subprocess.Process) -> int:
    """`process.wait()` would also wait for what it left in the background with its output open."""
    while process.returncode is None:  # noqa: ASYNC110 - asyncio tells of it too late
        await asyncio.sleep(_LOOK_S)
    return process.returncode


async def _read(stream: asyncio.StreamReader | None, kept: bytearray) -> None:
    """Keep what it writes, up to a limit; the rest is read and forgotten, so that it can end."""
    while stream is not None and (piece := await stream.read(65_536)):
        kept += piece[: _MOST_BYTES - len(kept)]


async def _end(process: asyncio.subprocess.Process) -> None:
    """Nothing of one that was stopped stays behind."""
    if process.returncode is None:
        _kill(process)
        await asyncio.shield(_exit_code(process))
    # There is no other way to let go of pipes that something in the background may hold open.
    process._transport.close()  # pyright: ignore


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
