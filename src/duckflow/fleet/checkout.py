"""A run's copy of its repository, its changes there, and the branch that results. Nothing is pushed.

The copy is a clone, so that git commands in it can't reach the repository. Changes are read with the
repository's git folder and settings, because a command may have changed those of the copy.
"""

import os
import shutil
import subprocess
from pathlib import Path

from duckflow.config.places import checkouts_dir
from duckflow.domain.errors import UsageError, UserError
from duckflow.fleet.runs import FleetRun
from duckflow.safety.sandbox.view.git_settings import run_git

BRANCHES = "duckflow"
_SECONDS = 600
_READY = "ready"
_DIFF = ("diff", "--binary", "--no-ext-diff", "--no-textconv", "--no-color", "--no-renames")
_AUTHOR = {"NAME": "Duckflow", "EMAIL": "duckflow@localhost"}


def find_repository(folder: Path) -> tuple[str, str]:
    """Return the repository that a folder belongs to, and its newest commit."""
    if not folder.is_dir():
        raise UsageError("fleet.no_folder", folder=folder)
    try:
        top = _git(folder, "rev-parse", "--show-toplevel").decode().strip()
        return os.path.realpath(top), _git(Path(top), "rev-parse", "HEAD").decode().strip()
    except UserError as exc:
        raise UsageError("fleet.no_repository", folder=folder) from exc


def remove_checkout(run: str) -> None:
    """Delete the copy of a run, if this machine has one."""
    shutil.rmtree(checkouts_dir() / run, ignore_errors=True)


class Checkout:
    """The copy of one run on this machine."""

    def __init__(self, run: FleetRun) -> None:
        self._run = run
        self._home = checkouts_dir() / run.id
        self._repository = Path(run.repository)
        self.folder = self._home / (self._repository.name or "repository")

    def prepare(self, patch: bytes, *, moved: bool) -> None:
        """Create the copy from the base commit and the patch, unless an up-to-date copy exists."""
        if (self._home / _READY).exists() and not moved:
            return
        if not self._repository.is_dir():
            raise UserError("fleet.not_here", repository=self._run.repository)
        shutil.rmtree(self._home, ignore_errors=True)
        self._home.mkdir(mode=0o700)
        words = ("clone", "--quiet", "--no-hardlinks", "--no-checkout", "--template=")
        places = str(self._repository), str(self.folder)
        _git(self._home, *words, *places, environment={"GIT_ALLOW_PROTOCOL": "file"})
        _git(self.folder, "checkout", "--quiet", "--detach", self._run.base)
        _git(self.folder, "remote", "remove", "origin")
        if patch:
            _git(self.folder, "apply", "--binary", "--whitespace=nowarn", "-", given=patch)
        (self._home / _READY).touch()

    def changes(self) -> bytes:
        """Return the difference to the base, in a form that git can apply."""
        return _git(self._repository, *_DIFF, self._run.base, self._tree())

    def publish(self) -> str:
        """Put the changes on a branch of the repository; return its name, empty if nothing changed."""
        tree = self._tree()
        if tree == _git(self._repository, "rev-parse", f"{self._run.base}^{{tree}}").decode().strip():
            return ""
        name = f"{BRANCHES}/{self._run.id}"
        message = f"{self._run.request.strip()}\n\nDuckflow run {self._run.id}\n".encode()
        words = ("commit-tree", tree, "-p", self._run.base, "-F", "-")
        commit = _git(self._repository, *words, given=message).decode().strip()
        _git(self._repository, "update-ref", f"refs/heads/{name}", commit)
        return name

    def _tree(self) -> str:
        """Store the files of the copy in the repository's object folder; return the id of their tree."""
        # Use a separate git folder, whose settings name no programs that would change the files.
        bare = self._home / "bare"
        if not bare.exists():
            kind = _git(self._repository, "rev-parse", "--show-object-format").decode().strip()
            _git(self._home, "init", "--quiet", "--bare", f"--object-format={kind}", "--template=", str(bare))
        objects = _git(self._repository, "rev-parse", "--git-path", "objects").decode().strip()
        own = {
            "GIT_DIR": str(bare),
            "GIT_INDEX_FILE": str(self._home / "index"),
            "GIT_WORK_TREE": str(self.folder),
            "GIT_OBJECT_DIRECTORY": str(self._repository / objects),
        }
        _git(self._home, "read-tree", self._run.base, environment=own)
        _git(self.folder, "add", "--all", environment=own)
        return _git(self._home, "write-tree", environment=own).decode().strip()


def _git(folder: Path, *words: str, given: bytes = b"", environment: dict[str, str] | None = None) -> bytes:
    who = {f"GIT_{role}_{part}": value for role in ("AUTHOR", "COMMITTER") for part, value in _AUTHOR.items()}
    set_here = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_TERMINAL_PROMPT": "0", **who, **(environment or {})}
    try:
        done = run_git(words, set_here, given, folder=str(folder), seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as exc:
        if isinstance(exc, FileNotFoundError) and exc.filename is None:
            raise UserError("fleet.no_git") from exc
        raise UserError("fleet.git_failed", command=words[0], reason=str(exc)) from exc
    if done.returncode:
        reason = done.stderr.decode("utf-8", "replace").strip()
        raise UserError("fleet.git_failed", command=words[0], reason=reason)
    return done.stdout
