"""Copies of the workspace in which checks run, so that checks can't change the workspace itself.

Each command gets a private copy from the sandbox. If the sandbox has no copies, or a few files are enough,
the files are copied instead, and deleted after each round because commands may have left links there.
"""

import asyncio
import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import AsyncGenerator, Callable, Collection, Iterable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.safety.files.listing import Listing
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import keeps_secrets
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.copy.copies import PlacedFile
from duckflow.safety.sandbox.shell import Shell

MOST_FILES, MOST_BYTES = 3_000, 40_000_000
"""Folders with more files or bytes are not copied as a whole."""

LARGEST_FILE = 2_000_000

_MOST_NAMED = 300
_DEPTH = 12
_NEAR = 200
_LINKED = (".venv", "venv", "node_modules")
OWN_PROGRAMS = (Path(sys.executable).parent,)
"""Folders with programs installed with Duckflow, which checks may run."""

_PROGRAMS = (".venv/bin", "venv/bin", "node_modules/.bin")
_LEFT_OUT = (".git", ".hg", ".svn", "__pycache__", "target", "dist", "build", ".tox", ".nox", ".next")


class CheckCopy(NamedTuple):
    """Temporary copy of a workspace, and a shell to run checks in it."""

    shell: Shell
    folder: Path
    setup: str
    """Shell commands that put the programs for checks on the PATH."""
    files: Mapping[str, bytes | PlacedFile] | None = None
    """Files added to each command's private copy; None if the shell's folder is the copy."""

    async def run(self, command: str, *, seconds: float) -> CommandResult:
        """Run a command in the copy. Raise ToolError if it can't be run at all."""
        if self.files is not None:
            return await self.shell.try_out(f"{self.setup}\n{command}", self.files, timeout_s=seconds)
        there = f"cd {shlex.quote(str(self.folder))} && {{ {self.setup}\n{command}\n}}"
        return await self.shell.run(there, timeout_s=seconds)


class CheckCopies:
    """Makes copies of a workspace: private ones in its sandboxed shell, or folders of copied files."""

    def __init__(self, workspace: Workspace, shell: Shell, open_shell: Callable[[Path], Shell]) -> None:
        self.workspace = workspace
        self._shell = shell
        self._open_shell = open_shell
        self._own: tuple[Shell, Path] | None = None
        self._lock = asyncio.Lock()
        programs = (*OWN_PROGRAMS, *(workspace.root / name for name in _PROGRAMS))
        self._setup = f'export PATH="$PATH":{":".join(shlex.quote(str(place)) for place in programs)}'

    def files(self) -> tuple[str, ...]:
        """Return the paths of the files in a full copy; if they are too many, those closest to the top."""
        listing = self._listing()
        return tuple(entry.path for entry in listing.entries if entry.kind == "file")

    @asynccontextmanager
    async def copy(
        self,
        *,
        near: Collection[str] | None = None,
        changed: Iterable[str] = (),
        files: Mapping[str, str | PlacedFile] | None = None,
    ) -> AsyncGenerator[CheckCopy]:
        """Open a copy to run checks in. Raise ToolError if there is no sandbox or too much to copy.

        With `near`, it has only these files and those around them. `files` replaces the content of files.
        Compiled versions of these and of the `changed` files are removed.
        """
        sandbox = await self._shell.sandbox()
        if sandbox.level == "none":
            raise ToolError("there is no sandbox here")
        new = {
            _inside(path): PlacedFile(one.encode("utf-8", "surrogatepass")) if isinstance(one, str) else one
            for path, one in (files or {}).items()
        }
        if near is None and sandbox.copies:
            setup = f"{self._setup}; {_forget_compiled((*changed, *new))}"
            yield CheckCopy(self._shell, self.workspace.root, setup, new)
            return
        async with self._lock:
            if self._own is None:
                place = Path(tempfile.mkdtemp(prefix="duckflow-checks-"))
                self._own = (self._open_shell(place), place)
            shell, place = self._own
            folder = await asyncio.to_thread(self._make, place, near, new)
            try:
                yield CheckCopy(shell, folder, self._setup)
            finally:
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    async def aclose(self) -> None:
        """Close the shell and delete its folder."""
        if self._own is not None:
            (shell, place), self._own = self._own, None
            await shell.aclose()
            await asyncio.to_thread(shutil.rmtree, place, ignore_errors=True)

    def _make(self, place: Path, near: Collection[str] | None, files: Mapping[str, PlacedFile]) -> Path:
        wanted = self._everything() if near is None else self._around(near)
        folder = Path(tempfile.mkdtemp(prefix="copy-", dir=place))
        try:
            for path in wanted:
                if path not in files and not keeps_secrets(path):
                    self._copy_file(path, folder / path)
            for path, one in files.items():
                if one.link and one.content is not None:
                    (folder / path).parent.mkdir(parents=True, exist_ok=True)
                    (folder / path).symlink_to(os.fsdecode(one.content))
                elif one.content is not None:
                    _write(folder / path, one.content, executable=self._is_executable(path, one))
        except OSError as exc:
            shutil.rmtree(folder, ignore_errors=True)
            raise ToolError(f"no copy could be made: {exc.strerror}") from exc
        for name in _LINKED:
            if (self.workspace.root / name).is_dir() and not (folder / name).exists():
                (folder / name).symlink_to(self.workspace.root / name)
        return folder

    def _everything(self) -> tuple[str, ...]:
        listing = self._listing()
        files = [entry for entry in listing.entries if entry.kind == "file" and entry.size <= LARGEST_FILE]
        if not listing.complete or sum(entry.size for entry in files) > MOST_BYTES:
            raise ToolError("the folder is too large for a copy")
        return tuple(entry.path for entry in files)

    def _listing(self) -> Listing:
        skipped = frozenset((*_LINKED, *_LEFT_OUT))
        return self.workspace.list(".", depth=_DEPTH, limit=MOST_FILES, skip=skipped)

    def _around(self, near: Iterable[str]) -> tuple[str, ...]:
        found = dict.fromkeys(near)
        for folder in {str(above) for path in near for above in Path(path).parents}:
            entries = self.workspace.list(folder, depth=1, limit=_NEAR).entries
            found |= dict.fromkeys(e.path for e in entries if e.kind == "file" and e.size <= LARGEST_FILE)
        return tuple(found)

    def _copy_file(self, path: str, target: Path) -> None:
        try:
            data = self.workspace.read_bytes(path, cap=LARGEST_FILE)
            status = self.workspace.status(path)
        except ToolError:
            return  # deleted meanwhile, or unreadable
        _write(target, data, executable=status is not None and status.executable)

    def _is_executable(self, path: str, one: PlacedFile) -> bool:
        if one.executable is not None:
            return one.executable
        status = self.workspace.status(path)
        return status is not None and status.executable


def _forget_compiled(paths: Iterable[str]) -> str:
    """Return a command that deletes bytecode, which Python runs if the source's size and time match."""
    paths = [path for path in paths if path.endswith(".py")]
    if len(paths) > _MOST_NAMED:  # too many for one command
        return "find . -path './.venv' -prune -o -path '*/__pycache__/*.pyc' -exec rm -f -- {} +"
    places = ((Path(path).parent / "__pycache__", Path(path).stem) for path in paths)
    return " ".join(("rm -f --", *(f"{shlex.quote(f'{folder}/{stem}.')}*.pyc" for folder, stem in places)))


def _write(target: Path, data: bytes, *, executable: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    if executable:
        target.chmod(0o755)


def _inside(path: str) -> str:
    relative = Path(path)
    if relative.is_absolute() or ".." in relative.parts:
        raise ToolError(f"{path}: is not inside the folder")
    return str(relative)
