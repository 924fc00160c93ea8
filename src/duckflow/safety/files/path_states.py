"""State of a path, for undo and recovery: file, link, folder or nothing. Links are not followed."""

import errno
import hashlib
import os
import stat
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.files.changes import FOLDER, LINK, FileChange
from duckflow.safety.descriptors import READ, closing_fd, temporary_in
from duckflow.safety.files import atomic
from duckflow.safety.files.atomic import LARGEST, ChangedMeanwhile, FilePlace
from duckflow.safety.files.confined_open import ConfinedFolder
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.files.git_directory import split_root
from duckflow.safety.files.replacing import NotAsExpected, Place, move_aside
from duckflow.safety.files.temporary import aside_for

Finding = Literal["done", "not_done", "unknown"]
"""Result of comparing a recorded change with the file as it is now (SAFETY 12)."""

_BITS = 0o7777


class PathState(NamedTuple):
    """State of a path. `word` is the SHA-256 of a file, `link:` and the SHA-256 of a target, or `folder`."""

    word: str
    mode: int
    data: bytes = b""
    """Content of a file, or target of a link."""

    @property
    def kind(self) -> str:
        """`folder`, `link:` or `file`."""
        return FOLDER if self.word == FOLDER else LINK if self.word.startswith(LINK) else "file"


class PathStates:
    """States of paths in one open folder, and in its git directory if that lies outside. Blocking."""

    def __init__(self, root: ConfinedFolder, git_directory: str | None = None) -> None:
        self._root = root
        self._git_directory = git_directory
        self._git = ConfinedFolder(Path(git_directory)) if git_directory else None

    def close(self) -> None:
        """Close the git directory."""
        if self._git is not None:
            self._git.close()

    def now(self, path: str) -> PathState | None:
        """Return the current state of a path, None if nothing exists. Raise ToolError if it can't be read.

        Nothing exists behind a link that is in the place of a folder.
        """
        with as_tool_errors(path):
            try:
                with self._place(path) as place:
                    return _look(place)
            except OSError as exc:
                if exc.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
                    return None
                raise

    def exists(self, path: str) -> bool:
        """Return whether there is anything at a path."""
        with suppress(OSError), self._place(path) as place:
            os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
            return True
        return False

    def entries(self, path: str) -> Mapping[str, bool]:
        """Return the names in a folder, each with True if it is a folder. A missing folder has no names."""
        with (
            suppress(OSError),
            self._place(f"{path}/." if path else ".") as place,
            os.scandir(place.folder) as found,
        ):
            return {one.name: one.is_dir(follow_symlinks=False) for one in found}
        return {}

    def finding(self, change: FileChange) -> Finding:
        """Return whether a recorded change was made, by comparing it with the current file."""
        try:
            now = self.now(change.path)
        except ToolError:
            return "unknown"
        found = now.word if now else None
        if found == change.after:
            return "done"
        return "not_done" if found == change.before else "unknown"

    def made_of(self, intended: Iterable[FileChange]) -> tuple[FileChange, ...]:
        """Return those of the intended changes that were made."""
        return tuple(change for change in intended if self.finding(change) == "done")

    def put(self, path: str, wanted: PathState | None, expected: str | None) -> None:
        """Bring the path to the wanted state, with the folders above it if something is to exist there.

        Raise ChangedMeanwhile if it is not in the expected state.
        """
        with as_tool_errors(path), self._place(path, create=wanted is not None) as place:
            now = _look(place)
            if (now.word if now else None) != expected:
                raise ChangedMeanwhile(f"{path}: was changed by someone else. Nothing was changed.")
            if now is not None and wanted is not None and now.word == wanted.word:
                _set_mode(place, wanted.mode)
            else:
                if now is not None and (wanted is None or now.kind != wanted.kind):
                    _remove(place, now)
                    expected = None
                if wanted is not None:
                    _write(place, wanted, expected)
            os.fsync(place.folder)

    def missing_folders(self, path: str) -> tuple[str, ...]:
        """Return the folders above the path that do not exist, outermost first."""
        outside, below = split_root(path, self._git_directory)
        above = below.rpartition("/")[0]
        with suppress(OSError):  # a file or link is where a folder was
            return self._root.missing(above) if above and not outside else ()
        return ()

    @contextmanager
    def _place(self, path: str, *, create: bool = False) -> Generator[FilePlace]:
        outside, below = split_root(path, self._git_directory)
        above, _, name = below.rpartition("/")
        root = self._git if outside and self._git is not None else self._root
        with closing_fd(root.open_folder(above or ".", create=create)) as opened:
            yield FilePlace(opened, name or ".", path, path)


def _look(place: FilePlace) -> PathState | None:
    try:
        status = os.stat(place.name, dir_fd=place.folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
    mode = status.st_mode & _BITS
    if stat.S_ISDIR(status.st_mode):
        return PathState(FOLDER, mode)
    if stat.S_ISLNK(status.st_mode):
        target = os.fsencode(os.readlink(place.name, dir_fd=place.folder))
        return PathState(f"{LINK}{hashlib.sha256(target).hexdigest()}", mode, target)
    with closing_fd(os.open(place.name, READ, dir_fd=place.folder)) as opened:
        atomic.check_regular(os.fstat(opened), place.path, LARGEST)
        data = atomic.read_all(opened, place.path, LARGEST)
    return PathState(hashlib.sha256(data).hexdigest(), mode, data)


def _write(place: FilePlace, wanted: PathState, expected: str | None) -> None:
    """Create a file, link or folder, or replace a file by a file or a link by a link in one step."""
    if wanted.word == FOLDER:
        os.mkdir(place.name, 0o700, dir_fd=place.folder)
        _set_mode(place, wanted.mode)
    elif wanted.kind == "file":
        atomic.replace(place, wanted.data, expected, mode=wanted.mode)
    elif expected is None:
        os.symlink(os.fsdecode(wanted.data), place.name, dir_fd=place.folder)
    else:
        with temporary_in(place.folder) as temporary:
            os.symlink(os.fsdecode(wanted.data), temporary, dir_fd=place.folder)
            os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)


def _remove(place: FilePlace, now: PathState) -> None:
    if now.word != FOLDER:
        aside = aside_for((place.folder, place.name), now.word.removeprefix(LINK))
        try:
            move_aside((place.folder, place.name), aside, lambda at: _is(place, at, now))
        except NotAsExpected as exc:
            said = f"{place.path}: was changed by someone else. Nothing was changed."
            raise ChangedMeanwhile(said) from exc
        os.unlink(aside[1], dir_fd=place.folder)
        return
    try:
        os.rmdir(place.name, dir_fd=place.folder)
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        raise ToolError(f"{place.path}: is not empty, so it stays.") from exc


def _is(place: FilePlace, at: Place, expected: PathState) -> bool:
    with suppress(ToolError, OSError):
        now = _look(place._replace(name=at[1]))
        return now is not None and now.word == expected.word
    return False


def _set_mode(place: FilePlace, mode: int) -> None:
    """Set the permission bits of a file or folder, never through a link."""
    with closing_fd(os.open(place.name, READ, dir_fd=place.folder)) as opened:
        os.fchmod(opened, mode)
