"""Contents of changed files as they were shown, while commands could still change the copy (SAFETY 7).

The rules judge these contents, the user sees them, and they are what is written.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, suppress

from duckflow.domain.files.effects import Effect
from duckflow.domain.frozen import replace
from duckflow.safety.descriptors import READ, closing_fd, copy_to_new, open_readable, temporary_in
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.confined_open import FOLDER
from duckflow.safety.sandbox.copy.layers import file_digest, read_whole

_NEW = ("created", "changed", "moved")

_NOTHING = "0" * 64
"""Stands for content that could not be kept. No content has this hash, so it is never written."""

Source = Callable[[str], AbstractContextManager[tuple[int, str]]]
"""Opens the folder of a path in the copy, and gives it with the last name."""


class ShownFiles:
    """Keeps contents in a folder that no command can reach."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._contents: dict[str, str | bytes | None] = {}
        self.times: dict[str, tuple[int, int]] = {}
        """Times of access and change, in nanoseconds. Files with the same content are kept only once."""

    def __contains__(self, path: str) -> bool:
        return path in self._contents

    def keep(self, effect: Effect, source: Source) -> Effect:
        """Keep the new content of a file. Return the effect with the hash of what is kept."""
        if effect.type == "link" and effect.kind != "deleted":
            self._contents[effect.path] = os.fsencode(effect.link_target)
        if effect.type != "file" or effect.kind not in _NEW or effect.after is None:
            return effect
        self._contents[effect.path] = None
        if effect.size > LARGEST:
            return effect
        with suppress(FileExistsError):
            os.mkdir(self._place, 0o700)
        try:
            with source(effect.path) as (above, name):
                status = os.stat(name, dir_fd=above, follow_symlinks=False)
                self.times[effect.path] = status.st_atime_ns, status.st_mtime_ns
            with closing_fd(os.open(self._place, FOLDER)) as folder:
                if not _exists(folder, effect.after):
                    effect = self._copy(effect, source, folder)
                self._contents[effect.path] = effect.after
        except OSError:
            return replace(effect, after=_NOTHING)
        return effect

    def _copy(self, effect: Effect, source: Source, folder: int) -> Effect:
        with (
            source(effect.path) as (above, name),
            closing_fd(open_readable(above, name)) as opened,
            temporary_in(folder) as temporary,
        ):
            copy_to_new(opened, folder, temporary, 0o600, durable=False)
            with closing_fd(os.open(temporary, READ, dir_fd=folder)) as kept:
                digest, size = file_digest(kept), os.fstat(kept).st_size
            os.rename(temporary, digest, src_dir_fd=folder, dst_dir_fd=folder)
        return replace(effect, after=digest, size=size)

    def content(self, path: str, most: int) -> bytes | None:
        """Return what was kept of a path, None if it has over `most` bytes or was too large to keep."""
        found = self._contents[path]
        if isinstance(found, bytes):
            return found
        with suppress(OSError), closing_fd(self.open(found)) as opened:
            return read_whole(opened, most)
        return None

    def open(self, digest: str | None) -> int:
        """Open kept content by its hash. Raise FileNotFoundError if it was not kept."""
        return os.open(f"{self._place}/{digest}", READ)

    def forget(self, but: Iterable[str | None] = ()) -> None:
        """Remove contents that are no longer shown, except those with these hashes."""
        kept = frozenset(but)
        with suppress(FileNotFoundError):
            for name in os.listdir(self._place):
                if name not in kept:
                    os.unlink(f"{self._place}/{name}")

    def clear(self) -> None:
        """Remove all contents, because no command can change the copy any more."""
        self._contents.clear()
        self.times.clear()
        self.forget()


def _exists(folder: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        os.stat(name, dir_fd=folder, follow_symlinks=False)
        return True
    return False
