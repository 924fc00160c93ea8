"""Copies of workspaces: made for commands, and kept while the user decides about their effects.

Each copy is a folder with `upper` (the command's changes), `work` (used by the kernel) and `about.json`, and
two more folders for a git directory outside the workspace. A copy in use is locked.
"""

import errno
import fcntl
import hashlib
import json
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from contextlib import AbstractContextManager, suppress
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.descriptors import READ, closing_fd, set_mode
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.confined_open import FOLDER, LOOK
from duckflow.safety.files.git_directory import outer_git_directory, split_root
from duckflow.safety.paths import stamp_of
from duckflow.safety.policy.git_config import GitPlaces, LedTo
from duckflow.safety.policy.git_internals import led_to_by_git
from duckflow.safety.sandbox.copy.copy_reader import CopyReader
from duckflow.safety.sandbox.copy.effect_groups import CopyReading, group_effects
from duckflow.safety.sandbox.copy.layers import Layer, read_whole
from duckflow.safety.sandbox.copy.shown_files import ShownFiles
from duckflow.safety.sandbox.view.confinement import CopyMount
from duckflow.safety.sandbox.view.git_settings import current_commit
from duckflow.store.kept_files import ChangeOwner

KEPT_SECONDS = 7 * 24 * 3600
"""Time in seconds that effects are kept for the user's answer."""

MOST_KEPT = 50

_ABOUT = "about.json"


class AboutCopy(Frozen):
    """Description of a copy, stored in about.json."""

    workspace: str
    started_ns: int
    git_directory: str | None = None
    """Git directory to which the `.git` file points. It is copied, too."""
    commit: str = ""
    """Commit whose rules say what git ignores: the one checked out when the request began."""
    command: str = ""
    kept: bool = False
    approved: Effects | None = None
    """Effects being applied. If that was interrupted, the remaining ones are applied later."""
    owner: ChangeOwner = ChangeOwner("", "", "")
    """Session, request and action for which the effects are applied."""


class PlacedFile(NamedTuple):
    """File to put into a copy. If `content` is None, the copy has no such file."""

    content: bytes | None
    executable: bool | None = None
    """None to have the permissions of the file in the folder."""
    link: bool = False
    """True if the content is the target of a link."""


class WorkspaceCopy:
    """One copy of a workspace, locked by this process."""

    def __init__(
        self,
        folder: Path,
        about: AboutCopy,
        lock: int,
        outside: Iterable[str] = (),
        git_places: GitPlaces | None = None,
    ) -> None:
        self.folder = folder
        self.id = folder.name
        """Id of the copy. A later process can find a kept copy by it."""
        self.upper = str(folder / "upper")
        """Folder with the changes of the command."""
        self.about = about
        self._lock = lock
        self._outside = tuple(outside)
        self._git_places = git_places or GitPlaces(root=about.workspace)
        self._own: dict[str, int] = {}
        self._reading: tuple[CopyReading, object] | None = None
        self._layers: dict[str, Layer] = {}
        self.shown = ShownFiles(str(folder / "shown"))
        """Contents as they were shown while commands could still change the copy."""
        lowers = [("", about.workspace), ("git-", about.git_directory)]
        self.mounts = tuple(
            CopyMount(lower=lower, upper=f"{folder}/{name}upper", work=f"{folder}/{name}work")
            for name, lower in lowers
            if lower is not None
        )
        """Folders to mount: the copy of the workspace, and of its git directory if that lies outside."""

    @property
    def unused(self) -> bool:
        """True if nothing was written to the copy."""
        here, there = os.stat(self.upper), os.stat(self.about.workspace)
        return here.st_mode == there.st_mode and not any(os.listdir(one.upper) for one in self.mounts)

    def upper_path(self, path: str) -> str:
        """Return where the copy stores its version of a path, if the command changed it."""
        outside, below = split_root(path, self.about.git_directory)
        return os.path.join(self.mounts[outside].upper, below)

    def lower_path(self, path: str) -> str:
        """Return where a path really is, outside the copy."""
        outside, below = split_root(path, self.about.git_directory)
        return os.path.join(self.mounts[outside].lower, below)

    def put(self, files: Mapping[str, bytes | PlacedFile]) -> None:
        """Write files into the copy. Call it before any command runs, because commands could make links."""
        gone: list[str] = []
        for path, given in files.items():
            one = given if isinstance(given, PlacedFile) else PlacedFile(given)
            place = self._new_place(path)
            if one.content is None:
                gone.append(path)
            elif one.link:
                os.symlink(one.content, os.fsencode(place))
            else:
                place.write_bytes(one.content)
                with suppress(OSError):  # the workspace has no such file
                    place.chmod(stat.S_IMODE(os.stat(self.lower_path(path)).st_mode))
                if one.executable is not None:
                    executable = (
                        place.stat().st_mode | 0o111 if one.executable else place.stat().st_mode & ~0o111
                    )
                    place.chmod(stat.S_IMODE(executable))
        for path in gone:  # a file may have become a folder, or the other way round
            with suppress(FileExistsError, NotADirectoryError):
                os.mknod(self._new_place(path), stat.S_IFCHR)  # as the kernel marks deleted files

    def _new_place(self, path: str) -> Path:
        if os.path.isabs(path) or ".." in path.split("/"):
            raise FileNotFoundError(errno.EINVAL, "the path leads out of the folder", path)
        place = Path(self.upper_path(path))
        place.parent.mkdir(parents=True, exist_ok=True)
        return place

    def source(self, path: str) -> AbstractContextManager[tuple[int, str]]:
        """Open the folder of a path in the copy, without following links, and give it with the last name."""
        outside, below = split_root(path, self.about.git_directory)
        return self._layer(self.mounts[outside].upper).place(below)

    def open_lower(self, path: str) -> int:
        """Open a file outside the copy. Raise OSError if a name in its path is a link."""
        outside, below = split_root(path, self.about.git_directory)
        return self._layer(self.mounts[outside].lower).open(below, READ)

    def _layer(self, root: str) -> Layer:
        if root not in self._layers:
            self._layers[root] = Layer(root)
        return self._layers[root]

    def read(self, *, live: bool = False) -> CopyReading:
        """Return the effects, compared with the workspace. With `live`, commands may still change the copy.

        Then nothing of an earlier reading is reused, and the contents that will be shown are kept.
        """
        if self._reading is None or live or self._reading[1] != self._stamps(self._reading[0]):
            reader = CopyReader(self.mounts, self.about.started_ns, self._outside, self._own)
            reader.read()
            reading = group_effects(reader, self.about.workspace, self.about.commit, self._led_to)
            if live:
                kept = (self.shown.keep(one, self.source) for one in reading.effects.effects)
                reading = reading._replace(effects=replace(reading.effects, effects=tuple(kept)))
                self._reading = None
                return reading
            self.shown.clear()
            self._reading = reading, self._stamps(reading)
        return self._reading[0]

    def _led_to(self, folders: Collection[str]) -> LedTo:
        """Return the paths to which git's settings lead, in the repositories around these folders."""

        def read_lower(path: str) -> bytes | None:
            with suppress(OSError), closing_fd(self.open_lower(path)) as opened:
                return read_whole(opened, LARGEST)
            return None

        inside = [f"{folder}/" for folder in folders]
        places = self._git_places._replace(git_outside=self.about.git_directory)
        return led_to_by_git(inside, read_lower, places) if inside else LedTo()

    def _stamps(self, reading: CopyReading) -> list[object]:
        effects = chain(reading.effects.effects, *reading.bulk.values())
        paths = chain.from_iterable((one.path, one.moved_from) for one in effects)
        places = ((self.upper_path(path), self.lower_path(path)) for path in paths if path)
        return [stamp_of(place) for pair in places for place in pair]

    def content(self, path: str, most: int) -> bytes | None:
        """Return file content or a link target from the copy; None if above `most` bytes or neither."""
        if path in self.shown:
            return self.shown.content(path, most)
        outside, below = split_root(path, self.about.git_directory)
        return self._layer(self.mounts[outside].upper).content(below, most)

    def mount_again(self) -> None:
        """Let a program mount the copy after another one has ended, which the kernel refuses otherwise."""
        for mount in self.mounts:
            remove_tree(Path(mount.work))
            os.mkdir(mount.work, 0o700)

    def note_own(self, path: str) -> None:
        """Remember that Duckflow itself changed this path in the folder, so that it is not a conflict."""
        with suppress(OSError):
            self._own[path] = os.lstat(self.lower_path(path)).st_ctime_ns

    def keep(self, approved: Effects | None = None, owner: ChangeOwner | None = None) -> None:
        """Keep the copy when this process ends: its effects wait for an answer or are being applied."""
        self.about = replace(self.about, kept=True, approved=approved, owner=owner or self.about.owner)
        _write_about(self.folder, self.about)

    def discard(self) -> None:
        """Discard the effects of the command."""
        remove_tree(self.folder)
        self.release()

    def release(self) -> None:
        """Unlock the copy, because this process no longer uses it."""
        for layer in self._layers.values():
            layer.close()
        self._layers.clear()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


class CopyFolders:
    """Folder in which copies are made."""

    def __init__(self, place: Path, outside: Iterable[str] = (), git_places: GitPlaces | None = None) -> None:
        self._place = place
        self._commits = place.with_name("commits")
        self._outside = tuple(outside)
        self._git_places = git_places

    def make(self, workspace: str, command: str = "", request: str = "") -> WorkspaceCopy:
        """Make a copy of the folder as it is now. This is equally fast for any size of folder."""
        about = AboutCopy(
            workspace=workspace,
            git_directory=outer_git_directory(workspace),
            started_ns=time.time_ns(),
            commit=self._commit_before(workspace, request),
            command=command,
        )
        folder, lock = self._make_folder()
        copy = WorkspaceCopy(folder, about, lock, self._outside, self._git_places)
        for mount in copy.mounts:
            _make_layer(mount)
        return copy

    def _commit_before(self, workspace: str, request: str) -> str:
        """Return the commit that was checked out before the first command of a request, in any process."""
        if not request:
            return current_commit(workspace)
        noted = self._commits / hashlib.sha256(os.fsencode(workspace)).hexdigest()
        with suppress(OSError, ValueError):
            known, commit = noted.read_text("utf-8").split("\n")
            if known == request:
                return commit
        commit = current_commit(workspace)
        with suppress(OSError):
            self._commits.mkdir(mode=0o700, parents=True, exist_ok=True)
            noted.write_text(f"{request}\n{commit}", "utf-8")
        return commit

    def _make_folder(self) -> tuple[Path, int]:
        """Make a new folder and return it with its lock. Retry if another process removes it in between."""
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        while True:
            folder = self._place / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            if (lock := _lock(folder)) is not None:
                if folder.exists():
                    return folder, lock
                os.close(lock)

    def find(self, identity: str) -> WorkspaceCopy | None:
        """Return a kept copy by its id, if it still exists and no process uses it."""
        folder = self._place / identity
        about = _read_about(folder) if "/" not in identity else None
        if about is None or (lock := _lock(folder)) is None:
            return None
        return WorkspaceCopy(folder, about, lock, self._outside, self._git_places)

    def unfinished(self, workspace: str) -> list[WorkspaceCopy]:
        """Return copies of this workspace whose effects were applied only in part, after an interruption."""
        known = ((folder.name, _read_about(folder)) for folder in self._folders())
        ours = [name for name, about in known if about and about.approved and about.workspace == workspace]
        return [copy for name in ours if (copy := self.find(name)) is not None]

    def sweep(self) -> None:
        """Remove copies that killed processes left, and copies that waited too long for an answer."""
        kept: list[tuple[float, Path]] = []
        for folder in self._folders():
            about = _read_about(folder)
            if about is not None and about.kept:
                with suppress(FileNotFoundError):  # another process removed it
                    kept.append((folder.stat().st_mtime, folder))
            else:
                _remove_unused(folder)
        now = time.time()
        for noted in self._commits.glob("*"):
            with suppress(FileNotFoundError):
                if now - noted.stat().st_mtime > KEPT_SECONDS:
                    noted.unlink()
        kept.sort(reverse=True)
        for number, (when, folder) in enumerate(kept):
            if number >= MOST_KEPT or now - when > KEPT_SECONDS:
                _remove_unused(folder)

    def _folders(self) -> list[Path]:
        with suppress(OSError):
            return [folder for folder in self._place.iterdir() if folder.is_dir() and not folder.is_symlink()]
        return []


def _make_layer(mount: CopyMount) -> None:
    """Create the folders of a copy. `upper` appears as the folder itself, so it gets the same attributes."""
    like = os.stat(mount.lower)
    for path in (mount.work, mount.upper):
        os.mkdir(path, 0o700)
    with suppress(PermissionError):
        os.chown(mount.upper, like.st_uid, like.st_gid)
    os.chmod(mount.upper, stat.S_IMODE(like.st_mode))
    os.utime(mount.upper, ns=(like.st_atime_ns, like.st_mtime_ns))


def remove_tree(top: Path) -> None:
    """Remove a folder of Duckflow, whatever its depth and the permission bits that a command set."""
    with suppress(FileNotFoundError):
        _remove_flat(top)


def _remove_flat(top: Path) -> None:
    """Remove a tree. Moves each subfolder to the top before reading it, so that no path grows too long."""
    top.chmod(0o700)
    with closing_fd(os.open(top, FOLDER | os.O_NOFOLLOW)) as root:
        waiting = _empty(root, root)
        while waiting:
            name = waiting.pop()
            with closing_fd(_enter(root, name)) as folder:
                waiting += _empty(folder, root)
            os.rmdir(name, dir_fd=root)
    top.rmdir()


def _empty(folder: int, root: int) -> list[str]:
    """Remove the files of an open folder, and move its subfolders to `root`. Return their names there."""
    below: list[str] = []
    for name in os.listdir(folder):
        if not stat.S_ISDIR(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            os.unlink(name, dir_fd=folder)
        elif folder == root:
            below.append(name)
        else:
            os.close(_enter(folder, name))  # a folder that its owner may not change can't be moved
            below.append(secrets.token_hex(8))
            os.rename(name, below[-1], src_dir_fd=folder, dst_dir_fd=root)
    return below


def _enter(folder: int, name: str) -> int:
    """Open a subfolder, after permitting its owner everything."""
    with closing_fd(os.open(name, LOOK | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=folder)) as seen:
        set_mode(seen, 0o700)
        return os.open(".", FOLDER, dir_fd=seen)


def _remove_unused(folder: Path) -> None:
    if (lock := _lock(folder)) is not None:
        with closing_fd(lock):
            remove_tree(folder)


def _lock(folder: Path) -> int | None:
    """Lock a copy and return the lock's descriptor, None if another process has locked the copy."""
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
    with closing_fd(os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)) as opened:
        os.fsync(opened)
