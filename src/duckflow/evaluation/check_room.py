"""The check room: copies of the folder in which checks run, so that nothing they do reaches the folder.

A copy is made again for each round of checks, is bounded, and is thrown away afterwards: what ran in one may
have put links anywhere, so nothing is ever written into it again from outside. Folders with dependencies are
not copied but linked.
"""

import asyncio
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
from duckflow.safety.sandbox.shell import Shell

MOST_FILES, MOST_BYTES = 3_000, 40_000_000
"""A folder with more than this is not copied as a whole."""

LARGEST_FILE = 2_000_000

_DEPTH = 12
_NEAR = 200
_LINKED = (".venv", "venv", "node_modules")
"""Folders with what the project needs, made by others."""
_PROGRAMS = (".venv/bin", "venv/bin", "node_modules/.bin")
_LEFT_OUT = (".git", ".hg", ".svn", "__pycache__", "target", "dist", "build", ".tox", ".nox", ".next")


class CheckCopy(NamedTuple):
    """One copy, as long as it lasts."""

    shell: Shell
    folder: Path

    async def run(self, command: str, *, seconds: float) -> CommandResult:
        """Run a command in the copy. ToolError if it can't be run at all."""
        return await self.shell.run(
            f"cd {shlex.quote(str(self.folder))} && {{ {command}\n}}", timeout_s=seconds
        )


def check_environment(env: Mapping[str, str], root: Path) -> dict[str, str]:
    """The user's environment, with what checks need in reach: our own programs, and those of the project."""
    own = (str(Path(sys.executable).parent), *(str(root / name) for name in _PROGRAMS))
    return {**env, "PATH": ":".join(filter(None, (env.get("PATH", ""), *own)))}


class CheckRoom:
    """Makes copies of a workspace. `open_shell` gives a shell that may write in one folder only."""

    def __init__(self, workspace: Workspace, open_shell: Callable[[Path], Shell]) -> None:
        self.workspace = workspace
        self._open_shell = open_shell
        self._shell: Shell | None = None
        self._folder: Path | None = None
        self._lock = asyncio.Lock()

    @property
    def idle(self) -> bool:
        """Whether no copy was made and no shell opened yet."""
        return self._shell is None

    def files(self) -> tuple[str, ...]:
        """The files a whole copy has, by their paths; those nearest to the top if there are too many."""
        listing = self._listing()
        return tuple(entry.path for entry in listing.entries if entry.kind == "file")

    async def sandboxed(self) -> bool:
        """Whether there is a sandbox; without one nothing is run unasked."""
        return (await self._opened()[0].sandbox()).level != "none"

    @asynccontextmanager
    async def copy(
        self, *, near: Collection[str] | None = None, files: Mapping[str, str] | None = None
    ) -> AsyncGenerator[CheckCopy]:
        """A copy to run checks in, one at a time.

        With `near`, it only has these files and what lies in their folders and in those above. `files` have
        this content instead of their own. ToolError if there is too much to copy.
        """
        async with self._lock:
            shell, room = self._opened()
            folder = await asyncio.to_thread(self._make, room, near, files or {})
            try:
                yield CheckCopy(shell, folder)
            finally:
                await asyncio.shield(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    async def aclose(self) -> None:
        """The program ends."""
        shell, room = self._shell, self._folder
        self._shell = self._folder = None
        if shell is not None:
            await shell.aclose()
        if room is not None:
            await asyncio.to_thread(shutil.rmtree, room, ignore_errors=True)

    def _opened(self) -> tuple[Shell, Path]:
        if self._shell is None or self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="duckflow-checks-"))
            self._shell = self._open_shell(self._folder)
        return self._shell, self._folder

    def _make(self, room: Path, near: Collection[str] | None, files: Mapping[str, str]) -> Path:
        wanted = self._everything() if near is None else self._around(near)
        folder = Path(tempfile.mkdtemp(prefix="copy-", dir=room))
        try:
            for path in wanted:
                if path not in files and not keeps_secrets(path):
                    self._copy_file(path, folder / path)
            for path, content in files.items():
                _write(folder / _inside(path), content.encode("utf-8", "surrogatepass"))
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
            return  # gone meanwhile, or closed to us
        _write(target, data)
        if status is not None and status.executable:
            target.chmod(0o755)


def _write(target: Path, data: bytes) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)


def _inside(path: str) -> Path:
    relative = Path(path)
    if relative.is_absolute() or ".." in relative.parts:
        raise ToolError(f"{path}: is not inside the folder")
    return relative
