"""Process of one agent: `duckflow run` with its copy mounted in place of the workspace (O1, O2).

Where there are no copies, an agent that only reads works in the workspace itself.
"""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from duckflow.domain.text import one_line
from duckflow.safety.sandbox.copy.copies import WorkspaceCopy

_LONGEST_LINE = 64_000_000
_LAST_WORDS = 400
_PATIENCE_S = 5.0
"""Seconds in which a process that is asked to end must do so."""


class CopyProcess:
    """A Python program of Duckflow's own, for which a copy replaces the workspace."""

    def __init__(self, copy: WorkspaceCopy | Path, env: Mapping[str, str]) -> None:
        self._copy = copy
        self._env = env
        self._process: asyncio.subprocess.Process | None = None
        self._errors = b""

    @property
    def last_words(self) -> str:
        """The end of its error output."""
        return one_line(self._errors.decode(errors="replace"), _LAST_WORDS)

    @property
    def exit_code(self) -> int | None:
        """Exit code, None before its end."""
        return self._process.returncode if self._process else None

    async def lines(
        self, arguments: Sequence[str], said: bytes = b""
    ) -> AsyncGenerator[dict[str, Any], None]:
        """Run the program and yield each JSON object that it prints. If left early, end it."""
        start, folder = [sys.executable, "-P"], "/"
        if isinstance(self._copy, Path):
            folder = str(self._copy)
        else:
            order = json.dumps({"copies": [mount.model_dump() for mount in self._copy.mounts]})
            start += ["-m", "duckflow.safety.sandbox.child.on_copy", order]
        pipe = asyncio.subprocess.PIPE
        process = self._process = await asyncio.create_subprocess_exec(
            *start,
            *arguments,
            env=self._env,
            cwd=folder,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            limit=_LONGEST_LINE,
        )
        assert process.stdin
        assert process.stdout
        assert process.stderr
        hearing = asyncio.create_task(self._hear(process.stderr))
        try:
            process.stdin.write(said)
            process.stdin.close()
            async for line in process.stdout:
                with suppress(ValueError):
                    yield json.loads(line)
            await process.wait()
            await hearing
        finally:
            await _end(process)
            hearing.cancel()

    async def _hear(self, errors: asyncio.StreamReader) -> None:
        while block := await errors.read(65_536):
            self._errors = (self._errors + block)[-10 * _LAST_WORDS :]


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a process, in order if it does so in time. It takes its commands with it."""
    if process.returncode is not None:
        return
    with suppress(ProcessLookupError):
        process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(process.wait(), _PATIENCE_S)
        except TimeoutError:
            process.kill()
            await process.wait()
