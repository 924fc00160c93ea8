"""File access below one root that is held open: with size limits, atomic, all failures as ToolError."""

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.frozen import Frozen
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.files import atomic
from duckflow.safety.files.atomic import ANY, LARGEST, FileContent, FilePlace, Keep
from duckflow.safety.files.boundary import Boundary
from duckflow.safety.files.confined_open import LOOK, ConfinedFolder, OpenInside
from duckflow.safety.files.encoding import EncodedText, decode, encode
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.files.git_directory import outer_git_directory
from duckflow.safety.files.listing import Kind, Listing, list_tree
from duckflow.safety.files.path_states import PathStates
from duckflow.safety.policy.protected import Protection, strongest

READ_CAP = 2_000_000
"""Largest file, in bytes, that is read as a whole."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class FileStatus(Frozen):
    """Kind, size and version of the file a path leads to."""

    kind: Kind
    size: int
    stamp: tuple[int, ...] = ()
    """Inode, size and times of change; differs after any write to the file."""
    executable: bool = False


class Workspace:
    """Folder whose paths are relative to it and whose links never lead out of it. Blocking."""

    def __init__(self, root: Path, *, denied: Iterable[Path] = (), opener: OpenInside | None = None) -> None:
        self._boundary = Boundary(root, denied)
        try:
            self._confined = ConfinedFolder(self._boundary.root, opener)
        except FileNotFoundError as exc:
            raise UsageError("workspace.missing", path=str(root)) from exc
        except NotADirectoryError as exc:
            raise UsageError("workspace.not_a_folder", path=str(root)) from exc
        except OSError as exc:
            raise UsageError("workspace.no_access", path=str(root)) from exc
        self.root = self._boundary.root
        """Real absolute path at the start of the session."""
        self.identity = self._confined.identity
        """Device and inode number, which stay the same when the folder is renamed."""
        self.denied = self._boundary.denied
        """Absolute paths of folders that are closed to tools."""
        self.paths = PathStates(self._confined, outer_git_directory(str(self.root)))
        """States of real paths, for undo and recovery."""

    def relative(self, path: str, *, folder: bool = False) -> str:
        """Return a path that the model wrote relative to the root. Raise ToolError if it is not valid."""
        return self._boundary.relative(path, folder=folder)

    def protection(self, path: str) -> Protection:
        """Return the stronger protection of a path as written and as resolved."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            real = self._confined.resolve(written)
        return strongest(self._boundary.protection(written), self._boundary.protection(real))

    def close(self) -> None:
        """Close the root."""
        self.paths.close()
        self._confined.close()

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, None if nothing exists."""
        written = self.relative(path, folder=True)
        with (
            as_tool_errors(written),
            suppress(FileNotFoundError),
            closing_fd(self._confined.open(written, LOOK)) as opened,
        ):
            self._boundary.admit(written, self._confined.locate(opened, written))
            return _status_of(os.fstat(opened))
        return None

    def read_bytes(self, path: str, *, cap: int = READ_CAP) -> bytes:
        """Return the content of a regular file of at most `cap` bytes."""
        written = self.relative(path)
        with as_tool_errors(written), closing_fd(self._confined.open(written, _READ)) as opened:
            self._boundary.admit(written, self._confined.locate(opened, written))
            atomic.check_regular(os.fstat(opened), written, cap)
            return atomic.read_all(opened, written, cap)

    def read_encoded(self, path: str, *, cap: int = READ_CAP) -> EncodedText:
        """Return the content as text, with its encoding. Line ends and a byte order mark are kept."""
        return decode(self.relative(path), self.read_bytes(path, cap=cap))

    def read_text(self, path: str, *, cap: int = READ_CAP) -> str:
        """Return only the text of a file."""
        return self.read_encoded(path, cap=cap).text

    def write_bytes(
        self,
        path: str,
        data: bytes,
        *,
        expected: str | None = ANY,
        mode: int | None = None,
        keep: Keep | None = None,
    ) -> None:
        """Create or replace a file and the folders it needs.

        `expected` is the digest of the current content; `keep` is called right before the change.
        """
        with self._place(path, follow=True, create=expected in (ANY, None)) as place:
            atomic.replace(place, data, expected, keep, mode)

    def write_text(self, path: str, text: str) -> None:
        """Create or replace a file, as UTF-8."""
        self.write_bytes(path, encode(self.relative(path), text))

    def delete(self, path: str, *, expected: str | None = ANY, keep: Keep | None = None) -> None:
        """Remove a regular file."""
        with self._place(path, follow=False) as place:
            atomic.remove(place, expected, keep)

    def move(self, path: str, to: str, *, expected: str | None = ANY, keep: Keep | None = None) -> None:
        """Rename a regular file. Never overwrites an existing file at `to`."""
        with self._place(path, follow=False) as source:
            if atomic.regular_status(source) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            with self._place(to, follow=False, create=True) as target, _move_errors(source, target):
                atomic.move(source, target, expected, keep)

    def look(self, path: str) -> FileContent | None:
        """Return a file's current content and permission bits, None if there is no file."""
        with _or_missing(), self._place(path, follow=False) as place:
            return atomic.read_now(place)
        return None

    def sweep(self, path: str) -> None:
        """Remove temporary files that a killed write left next to a file.

        No other write may be running there.
        """
        with suppress(ToolError), self._place(path, follow=False) as place:
            atomic.sweep(place.folder, older_than_s=0)

    def drop_folder(self, path: str) -> None:
        """Remove a folder, if it is empty."""
        with suppress(ToolError), self._place(path, follow=False) as place:
            os.rmdir(place.name, dir_fd=place.folder)

    def list(
        self,
        path: str = ".",
        *,
        depth: int = 1,
        limit: int = 10_000,
        each: int | None = None,
        skip: Collection[str] = (),
    ) -> Listing:
        """List the entries below a folder. Links are listed, not followed; names in `skip` are left out.

        `each` limits the names read per folder, in the disk's own order.
        """
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            start = self._confined.resolve(written)
            self._boundary.admit(written, start)
            opened = self._confined.open_folder
            found = list_tree(opened, start, depth=depth, limit=limit, each=each, skip=skip)
        open_to_tools = tuple(e for e in found.entries if self._boundary.protection(e.path) != "denied")
        return Listing(entries=open_to_tools, complete=found.complete)

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file's content, None if there is no file."""
        with _or_missing():
            return hashlib.sha256(self.read_bytes(path, cap=LARGEST)).hexdigest()
        return None

    @contextmanager
    def _place(self, path: str, *, follow: bool, create: bool = False) -> Generator[FilePlace]:
        """Open the folder behind a path and find the real name. `follow` resolves a link in the last part."""
        written = self.relative(path)
        with as_tool_errors(written):
            above, _, name = written.rpartition("/")
            if follow:
                real = self._confined.resolve(written)
            else:
                folder = self._confined.resolve(above or ".")
                real = name if folder == "." else f"{folder}/{name}"
            self._boundary.admit(written, real)
            above, _, name = real.rpartition("/")
            made = self._confined.missing(above) if create and above else ()
            with closing_fd(self._confined.open_folder(above or ".", create=create)) as opened:
                yield FilePlace(opened, name, written, real, made)


def _status_of(found: os.stat_result) -> FileStatus:
    kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder"}
    kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
    return FileStatus(
        kind=kind,
        size=found.st_size,
        stamp=(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
        executable=kind == "file" and bool(found.st_mode & 0o111),
    )


@contextmanager
def _or_missing() -> Generator[None]:
    """Suppress the error of a missing file."""
    try:
        yield
    except ToolError as exc:
        if not isinstance(exc.__cause__, FileNotFoundError):
            raise


@contextmanager
def _move_errors(source: FilePlace, target: FilePlace) -> Generator[None]:
    try:
        yield
    except FileExistsError as exc:
        raise ToolError(f"{target.path}: exists already; nothing was moved. Choose another name.") from exc
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
        raise ToolError(f"{target.path}: is on another disk than {source.path}; write it there.") from exc
