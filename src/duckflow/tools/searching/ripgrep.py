"""Run ripgrep: the right binary, without environment, and with limits for time and output."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.tools.programs import run_program

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
    try:
        end = await run_program(command, given, seconds=TIME_LIMIT_S, most=OUTPUT_CAP, cwd=cwd)
    except TimeoutError as exc:
        raise ToolError(f"This took longer than {TIME_LIMIT_S:.0f} seconds; narrow it down.") from exc
    except OSError as exc:
        raise ToolError(f"{Path(command[0]).name} could not be started: {exc.strerror}.") from exc
    return RipgrepOutput(end.output, end.complete, end.errors[:4000].decode(errors="replace").strip())
