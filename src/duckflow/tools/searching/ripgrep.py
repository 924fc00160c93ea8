"""Run ripgrep: a trusted binary, with an empty environment and limits for time and output."""

import asyncio
import os
import shutil
import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from duckflow.domain.errors import ToolError
from duckflow.tools.programs import ProgramEnd, run_program

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
    """Raised if a pattern is no regular expression."""


def find_ripgrep(root: Path) -> Path | None:
    """Return an rg that the workspace can't have created: Duckflow's own, else the system's."""
    for candidate in _candidates():
        real = Path(os.path.realpath(candidate))
        if real.is_file() and os.access(real, os.X_OK) and not real.is_relative_to(root):
            return real
    return None


def _candidates() -> Iterator[Path]:
    yield Path(sys.executable).parent / "rg"
    from importlib import metadata  # noqa: PLC0415 - slow, and rarely needed

    with suppress(metadata.PackageNotFoundError):
        files = metadata.distribution("ripgrep").files or []
        yield from (Path(str(file.locate())) for file in files if file.name == "rg")
    if system := shutil.which("rg"):
        yield Path(system).absolute()


async def run_ripgrep(binary: Path, root: Path, arguments: list[str], path: str) -> ProgramEnd:
    """Run ripgrep on `path`, with sorted output."""
    target = "./" if path == "." else f"./{path}"
    trap = ["--no-ignore"] if await asyncio.to_thread(_is_trapped, root, path) else []
    return await run_capped([str(binary), *_ALWAYS, *trap, *arguments, "--", target], cwd=root)


def _is_trapped(root: Path, path: str) -> bool:
    """Return True if an ignore file above `path` is a pipe or the like, which would block a reader."""
    folder = root / path
    above = [one for one in (folder, *folder.parents) if one.is_relative_to(root)]
    for file in (one / name for one in above for name in _IGNORE_FILES):
        with suppress(OSError):
            if not stat.S_ISREG(file.stat().st_mode):
                return True
    return False


async def run_capped(command: list[str], *, cwd: Path | None = None, given: bytes = b"") -> ProgramEnd:
    """Run a program with an empty environment. Kill it if it exceeds a limit or the call is cancelled.

    Raise ToolError if it takes too long or reports an error instead of a result.
    """
    try:
        end = await run_program(command, given, seconds=TIME_LIMIT_S, most=OUTPUT_CAP, cwd=cwd)
    except TimeoutError as exc:
        raise ToolError(f"This took longer than {TIME_LIMIT_S:.0f} seconds; narrow it down.") from exc
    except OSError as exc:
        raise ToolError(f"{Path(command[0]).name} could not be started: {exc.strerror}.") from exc
    if end.errors and not end.output:
        said = end.errors[:4000].decode(errors="replace").strip().removeprefix("rg: ")
        raise BadPattern(said) if any(words in said for words in _BAD_PATTERN) else ToolError(said)
    return end
