"""Files that applied effects replace or remove, set aside until no program can have changed them unseen.

They lie in the folder of the copy. After a crash, a file there that is neither the old nor the new one is
what someone saved at that moment, so it is put back.
"""

import errno
import hashlib
import os
import stat
from contextlib import suppress
from typing import NamedTuple

from duckflow.safety.descriptors import closing_fd, open_readable
from duckflow.safety.files.confined_open import FOLDER
from duckflow.safety.files.replacing import (
    Place,
    give_back,
    identity_at,
    move_aside,
    put_back,
    put_in_place,
    remove_if_same,
    same_file,
)
from duckflow.safety.files.temporary import aside_for
from duckflow.safety.sandbox.copy.layers import file_digest, text_digest

_SURE_AFTER_NS = 2_000_000_000
"""Two changes of a file closer than that may have the same time, so the content is compared, too."""

_MOST_HELD = 200


class Found(NamedTuple):
    """A file in the workspace as it was when a change to it was checked."""

    digest: str | None
    status: os.stat_result
    looked_ns: int


class _OldFile(NamedTuple):
    path: str
    place: Place
    target: Place
    status: os.stat_result
    replaced: bool


class SetAside:
    """Replaces and removes files of the workspace for the effects of one copy."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._opened: int | None = None
        self._held: list[_OldFile] = []
        self.changed: list[str] = []
        """Paths that someone changed while they were being replaced. They are as that person left them."""

    def new(self, path: str) -> Place:
        """Return a free place for the new content of a path, on the file system of the copy."""
        if self._opened is None:
            with suppress(FileExistsError):
                os.mkdir(self._place, 0o700)
            self._opened = os.open(self._place, FOLDER)
        name = _name_of(path)
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self._opened)
        return self._opened, name

    def replace(self, new: Place, target: Place, path: str, found: Found) -> None:
        """Put new content in the place of a file that must be as it was found."""
        if put_in_place(new, target, lambda place: is_as_found(place, found)):
            self._hold(path, new, target, replaced=True)

    def remove(self, target: Place, path: str, found: Found) -> None:
        """Remove a file or link that must be as it was found."""

        def check(place: Place) -> bool:
            return is_as_found(place, found)

        aside = self.new(path)
        try:
            move_aside(target, aside, check)
        except OSError as exc:
            if exc.errno != errno.EXDEV:
                raise
            move_aside(target, aside := aside_for(target, found.digest or ""), check)
        self._hold(path, aside, target, replaced=False)

    def _hold(self, path: str, place: Place, target: Place, *, replaced: bool) -> None:
        status = os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
        held = _OldFile(path, place, target, status, replaced)
        if place[0] != self._opened or len(self._held) >= _MOST_HELD:
            self._settle(held)  # the folder of the target may be closed soon
        else:
            folder = os.dup(target[0])
            self._held.append(held._replace(target=(folder, target[1])))

    def settle(self) -> None:
        """Remove what was set aside. If someone wrote to it since, put it back."""
        for held in self._held:
            with closing_fd(held.target[0]):
                self._settle(held)
        self._held.clear()

    def _settle(self, held: _OldFile) -> None:
        now = os.stat(held.place[1], dir_fd=held.place[0], follow_symlinks=False)
        if not same_file(held.status, now):
            self.changed.append(held.path)
            if not held.replaced:
                give_back(held.place, held.target)
                return
            ours = identity_at(held.target)
            put_back(held.place, held.target, ours)
            remove_if_same(held.place, ours)
            return
        with suppress(FileNotFoundError):
            os.unlink(held.place[1], dir_fd=held.place[0])

    def left_by_a_crash(self, path: str) -> Place | None:
        """Return the place of a file that a killed process had set aside for this path."""
        if self._opened is None and not os.path.isdir(self._place):
            return None
        if self._opened is None:
            self._opened = os.open(self._place, FOLDER)
        with suppress(FileNotFoundError):
            os.stat(_name_of(path), dir_fd=self._opened, follow_symlinks=False)
            return self._opened, _name_of(path)
        return None

    def close(self) -> None:
        """Remove what was set aside, and close the folder."""
        try:
            self.settle()
        finally:
            if self._opened is not None:
                os.close(self._opened)
                self._opened = None


def is_as_found(place: Place, found: Found) -> bool:
    """Return whether the file at a place, where it may have been moved, is the one that was found."""
    with suppress(OSError):
        now = os.stat(place[1], dir_fd=place[0], follow_symlinks=False)
        if same_file(now, found.status) and found.looked_ns - found.status.st_mtime_ns > _SURE_AFTER_NS:
            return True
        return digest_at(place, now.st_mode) == found.digest is not None
    return False


def digest_at(place: Place, mode: int) -> str | None:
    """Return the digest of a file or link, None for anything else."""
    folder, name = place
    if stat.S_ISLNK(mode):
        return text_digest(os.readlink(name, dir_fd=folder))
    with closing_fd(open_readable(folder, name)) as opened:
        return file_digest(opened)


def _name_of(path: str) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:32]
