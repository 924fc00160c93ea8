"""Run ripgrep: the right binary, without environment, and with limits for time and output."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.errors import ToolError

TIME_LIMIT_S = 20.0
_IGNORE_FILES = (".gitignore", ".ignore", ".rgignore")
OUTPUT_CAP = 4_000_000

_ALWAYS = (
    "--no-config",  # settings of the user or project may run programs (--pre)
    "--no-follow",
    "--no-messages",
    "--color=never",
    "--hidden",
    "--no-require-git",  # .gitignore applies without a repository, too
    "--no-ignore-global",
    "--max-depth=128",  # deeper paths are too long to be named, and reading them takes seconds
    "--null",
    "--sort=path",
)


_BAD_PATTERN = ("regex parse error", "not allowed in a regex", "regex engine", "Compiled regex")


class BadPattern(ToolError):
    """Raised if ripgrep can't use a pattern."""


class RipgrepOutput(NamedTuple):
    """Output of a program. `complete` is False if it was stopped at the limit."""

    data: bytes
    complete: bool
    error: str


def find_ripgrep(root: Path) -> Path | None:
    """Return an rg that the workspace can't have created: Duckflow's own, else the system's."""
    for candidate in _candidates():
        real = Path(os.path.realpath(candidate))
        if real.is_file() and os.access(real, os.X_OK) and not real.is_relative_to(root):
            return real
    return None


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable).parent / "rg"
    import sysconfig  # noqa: PLC0415 - slow, and rarely needed
    from importlib import metadata  # noqa: PLC0415 - as above

    yield Path(sysconfig.get_path("scripts")) / "rg"
    try:
        files = metadata.distribution("ripgrep").files or []
    except metadata.PackageNotFoundError:
        files = []
    yield from (Path(str(file.locate())) for file in files if file.name == "rg")
    if system := shutil.which("rg"):
        yield Path(system).absolute()


async def run_ripgrep(binary: Path, root: Path, arguments: list[str], path: str) -> RipgrepOutput:
    """Run ripgrep on `path`, with sorted output. Raise ToolError for its errors and past the time limit."""
    target = "./" if path == "." else f"./{path}"
    trap = ["--no-ignore"] if await asyncio.to_thread(_is_trapped, root, path) else []
    output = await run_capped([str(binary), *_ALWAYS, *trap, *arguments, "--", target], cwd=root)
    if output.error and not output.data:
        said = output.error.removeprefix("rg: ")
        raise BadPattern(said) if any(words in said for words in _BAD_PATTERN) else ToolError(said)
    return output


def _is_trapped(root: Path, path: str) -> bool:
    """Return whether an ignore file above `path` is a pipe or the like, which would block a reader."""
    parts = Path(path).parts
    folders = (root.joinpath(*parts[:count]) for count in range(len(parts) + 1))
    return any(_is_odd(folder / name) for folder in folders for name in _IGNORE_FILES)


def _is_odd(file: Path) -> bool:
    try:
        return not stat.S_ISREG(file.stat().st_mode)
    except OSError:
        return False


async def run_capped(command: list[str], *, cwd: Path | None = None, given: bytes = b"") -> RipgrepOutput:
    """Run one of Duckflow's programs without environment. Kill it past its limits and on cancelling."""
    process = await _start(command, cwd)
    try:
        async with asyncio.timeout(TIME_LIMIT_S), asyncio.TaskGroup() as group:
            group.create_task(_give(process, given))
            error = group.create_task(_take(process, process.stderr, 4000))
            data, complete = await _take(process, process.stdout, OUTPUT_CAP)
            await process.wait()
    except TimeoutError as exc:
        raise ToolError(f"This took longer than {TIME_LIMIT_S:.0f} seconds; narrow it down.") from exc
    finally:
        if process.returncode is None:
            _kill(process)
        await process.communicate()  # reads its pipes to the end, so that they are closed
    return RipgrepOutput(data, complete, error.result()[0].decode(errors="replace").strip())


async def _start(command: list[str], cwd: Path | None) -> asyncio.subprocess.Process:
    try:
        return await asyncio.create_subprocess_exec(
            *command,
            cwd=cwd,
            env={},
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as exc:
        raise ToolError(f"{Path(command[0]).name} could not be started: {exc.strerror}.") from exc


async def _give(process: asyncio.subprocess.Process, given: bytes) -> None:
    assert process.stdin
    try:
        process.stdin.write(given)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        pass  # it has read enough
    finally:
        process.stdin.close()


async def _take(
    process: asyncio.subprocess.Process, stream: asyncio.StreamReader | None, cap: int
) -> tuple[bytes, bool]:
    """Read to the end in any case, because asyncio waits for a process until its pipes are empty."""
    assert stream
    taken = bytearray()
    while block := await stream.read(65_536):
        if len(taken) <= cap:
            taken += block
            if len(taken) > cap:
                _kill(process)
    return bytes(taken[:cap]), len(taken) <= cap


def _kill(process: asyncio.subprocess.Process) -> None:
    with suppress(ProcessLookupError):  # it has already ended
        process.kill()
