"""The one door to files for tools: beneath one root, capped, atomic, every failure a ToolError."""

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.frozen import Frozen
from duckflow.safety import atomic
from duckflow.safety.atomic import ANY, LARGEST, Place
from duckflow.safety.beneath import LOOK, Beneath, OpenBeneath, rename_to_new
from duckflow.safety.boundary import Boundary
from duckflow.safety.encoding import decode, encode
from duckflow.safety.faults import as_tool_errors
from duckflow.safety.protected import Protection, strongest
from duckflow.safety.tree import Kind, Listing, list_tree

READ_CAP = 2_000_000
"""Bytes of a file that is read as a whole."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class FileStatus(Frozen):
    """What a path leads to."""

    kind: Kind
    size: int


class Workspace:
    """A folder and what is in it. Blocking; paths are relative to the root, links never lead out of it."""

    def __init__(self, root: Path, *, denied: Iterable[Path] = (), opener: OpenBeneath | None = None) -> None:
        self._boundary = Boundary(root, denied)
        try:
            self._beneath = Beneath(self._boundary.root, opener)
        except FileNotFoundError as exc:
            raise UsageError("workspace.missing", path=str(root)) from exc
        except NotADirectoryError as exc:
            raise UsageError("workspace.not_a_folder", path=str(root)) from exc
        except OSError as exc:
            raise UsageError("workspace.no_access", path=str(root)) from exc

    @property
    def root(self) -> Path:
        """The real absolute path of the root, as it was at the start."""
        return self._boundary.root

    def relative(self, path: str, *, folder: bool = False) -> str:
        """A path as the model wrote it, relative to the root; ToolError where it can't be one."""
        return self._boundary.relative(path, folder=folder)

    def protection(self, path: str) -> Protection:
        """How a path is protected, as written and as resolved."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            real = self._beneath.resolve(written)
        return strongest(self._boundary.protection(written), self._boundary.protection(real))

    def status(self, path: str) -> FileStatus | None:
        """What is there, None for nothing."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            try:
                opened = self._beneath.open(written, LOOK)
            except FileNotFoundError:
                return None
            try:
                self._boundary.admit(written, self._beneath.locate(opened, written))
                found = os.fstat(opened)
            finally:
                os.close(opened)
        kinds: dict[int, Kind] = {stat.S_IFREG: "file", stat.S_IFDIR: "folder"}
        return FileStatus(kind=kinds.get(stat.S_IFMT(found.st_mode), "other"), size=found.st_size)

    def read_bytes(self, path: str, *, cap: int = READ_CAP) -> bytes:
        """The content of a regular file of at most `cap` bytes."""
        written = self.relative(path)
        with as_tool_errors(written):
            opened = self._beneath.open(written, _READ)
            try:
                self._boundary.admit(written, self._beneath.locate(opened, written))
                atomic.check_regular(os.fstat(opened), written, cap)
                return atomic.read_all(opened, written, cap)
            finally:
                os.close(opened)

    def read_text(self, path: str, *, cap: int = READ_CAP) -> str:
        """The content as UTF-8, exactly: line ends and a byte order mark are kept."""
        return decode(self.relative(path), self.read_bytes(path, cap=cap))

    def write_bytes(self, path: str, data: bytes, *, expected: str | None = ANY) -> None:
        """Replace or make a file, with the folders it needs. `expected`: digest of the content before."""
        with self._place(path, follow=True, create=expected in (ANY, None)) as place:
            atomic.replace(place, data, expected)

    def write_text(self, path: str, text: str, *, expected: str | None = ANY) -> None:
        """The same for text, as UTF-8."""
        self.write_bytes(path, encode(self.relative(path), text), expected=expected)

    def delete(self, path: str, *, expected: str | None = ANY) -> None:
        """Remove a regular file."""
        with self._place(path, follow=False) as place:
            if atomic.regular_status(place) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            atomic.check_expected(place, expected)
            os.unlink(place.name, dir_fd=place.folder)
            os.fsync(place.folder)

    def move(self, path: str, to: str, *, expected: str | None = ANY) -> None:
        """Rename a regular file; what is at `to` is never overwritten."""
        with self._place(path, follow=False) as source:
            if atomic.regular_status(source) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            atomic.check_expected(source, expected)
            with self._place(to, follow=False, create=True) as target:
                _rename(source, target)

    def list(
        self, path: str = ".", *, depth: int = 1, limit: int = 10_000, skip: Collection[str] = ()
    ) -> Listing:
        """What lies below a folder; links are named, not followed; names in `skip` are left out."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            start = self._beneath.resolve(written)
            self._boundary.admit(written, start)
            found = list_tree(self._beneath.open_folder, start, depth=depth, limit=limit, skip=skip)
        open_to_tools = tuple(e for e in found.entries if self._boundary.protection(e.path) != "denied")
        return Listing(entries=open_to_tools, complete=found.complete)

    def digest(self, path: str) -> str | None:
        """SHA-256 of a file's content, None where there is no file."""
        try:
            return hashlib.sha256(self.read_bytes(path, cap=LARGEST)).hexdigest()
        except ToolError as exc:
            if isinstance(exc.__cause__, FileNotFoundError):
                return None
            raise

    def close(self) -> None:
        """Give the root back."""
        self._beneath.close()

    @contextmanager
    def _place(self, path: str, *, follow: bool, create: bool = False) -> Generator[Place]:
        """The open folder and the real name behind a path; `follow` a link in its last part."""
        written = self.relative(path)
        with as_tool_errors(written):
            above, _, name = written.rpartition("/")
            if follow:
                real = self._beneath.resolve(written)
            else:
                folder = self._beneath.resolve(above or ".")
                real = name if folder == "." else f"{folder}/{name}"
            self._boundary.admit(written, real)
            above, _, name = real.rpartition("/")
            opened = self._beneath.open_folder(above or ".", create=create)
            try:
                yield Place(opened, name, written)
            finally:
                os.close(opened)


def _rename(source: Place, target: Place) -> None:
    try:
        rename_to_new((source.folder, source.name), (target.folder, target.name))
    except FileExistsError as exc:
        raise ToolError(f"{target.path}: exists already; nothing was moved. Choose another name.") from exc
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
        raise ToolError(f"{target.path}: is on another disk than {source.path}; write it anew.") from exc
    os.fsync(source.folder)
    os.fsync(target.folder)
