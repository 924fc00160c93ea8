"""The copies of one machine's workspaces: made for commands, kept while their effects wait for an answer.

Each is a folder of ours with `upper` (what the command did), `work` (the kernel's) and `about.json`; where
git's directory lies outside the workspace, there are two more for that. A copy in use is locked; one that a
killed process left is swept, unless its effects were kept for an answer.
"""

import fcntl
import json
import os
import secrets
import stat
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.descriptors import held
from duckflow.safety.files.git_directory import INSIDE, outer_git_directory, split_root
from duckflow.safety.sandbox.copy.effect_groups import FoundEffects
from duckflow.safety.sandbox.copy.effect_reader import EffectReader
from duckflow.safety.sandbox.view.confinement import CopyMount
from duckflow.safety.sandbox.view.git_settings import ignored_paths, tracked_files

KEPT_SECONDS = 7 * 24 * 3600
"""How long effects wait for an answer."""

MOST_KEPT = 50

_ABOUT = "about.json"
_MARK = ("work", "work/incompat", "work/incompat/volatile")


class AboutCopy(Frozen):
    """What a copy is of."""

    workspace: str
    started_ns: int
    git_directory: str | None = None
    """The one behind its `.git` file, which is copied, too."""
    command: str = ""
    kept: bool = False
    approved: Effects | None = None
    """What is being taken over: if that was interrupted, it is finished later."""
    owner: tuple[str, str, str] = ("", "", "")
    """Session, request and action that it is taken over for."""


class WorkspaceCopy:
    """One copy. Its effects are read from it when asked for, so they are never out of date."""

    def __init__(self, folder: Path, about: AboutCopy, lock: int, outside: Iterable[str] = ()) -> None:
        self.folder = folder
        self.id = folder.name
        """Names it, also after a restart."""
        self.upper = str(folder / "upper")
        """Where what the command did lies."""
        self._git_upper = str(folder / "git-upper")
        self.about = about
        self._lock = lock
        self._outside = tuple(outside)
        self._own: dict[str, int] = {}

    @property
    def mount(self) -> CopyMount:
        """What the sandbox is told."""
        git = self.about.git_directory
        upper, work = self._git_upper, str(self.folder / "git-work")
        more = (CopyMount(lower=git, upper=upper, work=work),) if git else ()
        return CopyMount(
            lower=self.about.workspace, upper=self.upper, work=str(self.folder / "work"), more=more
        )

    @property
    def unused(self) -> bool:
        """Whether nothing at all was written to it."""
        here, there = os.stat(self.upper), os.stat(self.about.workspace)
        uppers = (self.upper, *(one.upper for one in self.mount.more))
        return here.st_mode == there.st_mode and not any(map(os.listdir, uppers))

    def made(self, path: str) -> str:
        """Where a path lies as the command left it."""
        outside, below = split_root(path, self.about.git_directory)
        return os.path.join(self._git_upper if outside else self.upper, below)

    def real(self, path: str) -> str:
        """Where a path really lies."""
        outside, below = split_root(path, self.about.git_directory)
        return os.path.join(self.about.git_directory or "" if outside else self.about.workspace, below)

    def put(self, files: Mapping[str, bytes]) -> None:
        """Let the command find these files, by their paths in the folder.

        Only before anything ran in the copy: afterwards there may be links to anywhere in it.
        """
        for path, data in files.items():
            place = Path(self.made(path))
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
            with suppress(OSError):  # a new one
                place.chmod(stat.S_IMODE(os.stat(self.real(path)).st_mode))

    def read(self) -> FoundEffects:
        """What the command did, compared with the workspace as it is now. Blocking."""
        root, git, since = self.about.workspace, self.about.git_directory, self.about.started_ns
        outside = git is not None
        reader = EffectReader(self.upper, root, since, self._outside, self._own, git_outside=outside)
        found = reader.read(partial(ignored_paths, root), partial(tracked_files, root))
        if git is None:
            return found
        more = EffectReader(self._git_upper, git, since, self._outside, self._own, INSIDE)
        return found.joined(more.read(_none, _none))

    def content(self, path: str, most: int) -> bytes | None:
        """A file as the command left it, or a link's target.

        None if it is not there, too large or neither.
        """
        place = self.made(path)
        try:
            status = os.lstat(place)
            if stat.S_ISLNK(status.st_mode):
                return os.fsencode(os.readlink(place))
            if not stat.S_ISREG(status.st_mode) or status.st_size > most:
                return None
            opened = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return None
        with os.fdopen(opened, "rb") as file:
            return file.read(most + 1)[:most]

    def note_own(self, path: str) -> None:
        """Remember that we changed this path in the folder ourselves, so that it is no conflict."""
        with suppress(OSError):
            self._own[path] = os.lstat(self.real(path)).st_ctime_ns

    def keep(self, approved: Effects | None = None) -> None:
        """Let it outlive this process: its effects wait for an answer, or are being taken over."""
        self.about = replace(self.about, kept=True, approved=approved)
        _write_about(self.folder, self.about)

    def discard(self) -> None:
        """Throw away what the command did."""
        remove_tree(self.folder)
        self.release()

    def release(self) -> None:
        """Say that this process no longer uses it."""
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class CopyFolders:
    """Where copies are made."""

    def __init__(self, place: Path, outside: Iterable[str] = ()) -> None:
        self._place = place
        self._outside = tuple(outside)
        self._idle: list[WorkspaceCopy] = []

    def make(self, workspace: str, command: str = "") -> WorkspaceCopy:
        """A copy of the folder as it is now; costs the same however large that is."""
        git = outer_git_directory(workspace)
        about = AboutCopy(workspace=workspace, git_directory=git, started_ns=time.time_ns(), command=command)
        while len(self._idle) > 1:  # the view of the last one may not have been taken off yet
            copy = self._idle.pop(0)
            if copy.about.git_directory != git:
                copy.discard()
                continue
            copy.about = about
            for mount in (copy.mount, *copy.mount.more):
                _reset_work(Path(mount.work))
            return copy
        folder, lock = self._make_folder()
        copy = WorkspaceCopy(folder, about, lock, self._outside)
        for mount in (copy.mount, *copy.mount.more):
            _make_layer(mount)
        return copy

    def _make_folder(self) -> tuple[Path, int]:
        """A new folder, and what holds it; another process may sweep it away in between."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            folder = self._place / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            if (lock := _lock(folder)) is not None:
                if folder.exists():
                    return folder, lock
                os.close(lock)

    def give_back(self, copy: WorkspaceCopy) -> None:
        """Use a copy that nothing was written to again, for the next command."""
        self._idle.append(copy)

    def find(self, identity: str) -> WorkspaceCopy | None:
        """A kept copy by its id, if it is still there and nobody uses it."""
        folder = self._place / identity
        about = _read_about(folder) if "/" not in identity else None
        if about is None or (lock := _lock(folder)) is None:
            return None
        return WorkspaceCopy(folder, about, lock, self._outside)

    def unfinished(self, workspace: str) -> list[WorkspaceCopy]:
        """Copies of this folder whose taking over was interrupted."""
        found: list[WorkspaceCopy] = []
        for folder in self._folders():
            about = _read_about(folder)
            if about is not None and about.workspace == workspace and about.approved is not None:
                copy = self.find(folder.name)
                if copy is not None:
                    found.append(copy)
        return found

    def sweep(self) -> None:
        """Remove what killed processes left, and what waited too long."""
        kept: list[tuple[float, Path]] = []
        for folder in self._folders():
            about = _read_about(folder)
            if about is not None and about.kept:
                with suppress(FileNotFoundError):  # another process swept it
                    kept.append((folder.stat().st_mtime, folder))
            else:
                _remove_unused(folder)
        now = time.time()
        kept.sort(reverse=True)
        for number, (when, folder) in enumerate(kept):
            if number >= MOST_KEPT or now - when > KEPT_SECONDS:
                _remove_unused(folder)

    def close(self) -> None:
        """Remove the copies that nothing was written to."""
        for copy in self._idle:
            copy.discard()
        self._idle.clear()

    def _folders(self) -> list[Path]:
        with suppress(OSError):
            return [folder for folder in self._place.iterdir() if folder.is_dir() and not folder.is_symlink()]
        return []


def _none(_paths: list[str]) -> frozenset[str]:
    return frozenset()


def _make_layer(mount: CopyMount) -> None:
    """The view's own top folder is the upper one, with the owner, bits and time of what it is of."""
    like = os.stat(mount.lower)
    for path in (mount.work, mount.upper):
        os.mkdir(path, 0o700)
    with suppress(PermissionError):
        os.chown(mount.upper, like.st_uid, like.st_gid)
    os.chmod(mount.upper, stat.S_IMODE(like.st_mode))
    os.utime(mount.upper, ns=(like.st_atime_ns, like.st_mtime_ns))


def _reset_work(work: Path) -> None:
    """Remove the mark that the kernel leaves: a view that was not synced. If there is more, all goes."""
    try:
        for name in _MARK:
            os.chmod(f"{work}/{name}", 0o700)
        os.unlink(f"{work}/{_MARK[-1]}/dirty")
        for name in reversed(_MARK):
            os.rmdir(f"{work}/{name}")
    except OSError:
        remove_tree(work)
        work.mkdir(mode=0o700)


def remove_tree(top: Path) -> None:
    """Remove a folder of ours, however deep it is and whatever bits a command gave its folders."""
    with suppress(FileNotFoundError):
        _remove_flat(top)


def _remove_flat(top: Path) -> None:
    """One level at a time.

    A folder inside is moved to the top before it is looked into, so no path grows long.
    """
    top.chmod(0o700)
    waiting = [top]
    while waiting:
        folder = waiting[-1]
        folder.chmod(0o700)
        with os.scandir(folder) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        below: list[Path] = []
        for name, is_folder in found:
            if not is_folder:
                (folder / name).unlink()
            elif folder == top:
                below.append(folder / name)
            else:
                flat = top / f"{secrets.token_hex(8)}"
                (folder / name).chmod(0o700)
                (folder / name).rename(flat)
                below.append(flat)
        if below:
            waiting += below
        else:
            folder.rmdir()
            waiting.pop()


def _remove_unused(folder: Path) -> None:
    if (lock := _lock(folder)) is not None:
        with held(lock):
            remove_tree(folder)


def _lock(folder: Path) -> int | None:
    """A descriptor that holds the copy, None if another process does."""
    try:
        opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(opened)
        return None
    return opened


def _read_about(folder: Path) -> AboutCopy | None:
    try:
        return AboutCopy.model_validate(json.loads((folder / _ABOUT).read_text("utf-8")))
    except (OSError, ValueError):
        return None


def _write_about(folder: Path, about: AboutCopy) -> None:
    temporary = folder / f"{_ABOUT}.new"
    with temporary.open("w", encoding="utf-8") as file:
        file.write(about.model_dump_json())
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(folder / _ABOUT)
    with held(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as opened:
        os.fsync(opened)
