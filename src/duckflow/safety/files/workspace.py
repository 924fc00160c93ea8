"""The one door to files for tools: beneath one root, capped, atomic, every failure a ToolError."""

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files import atomic
from duckflow.safety.files.atomic import ANY, LARGEST, Content, FilePlace, Keep
from duckflow.safety.files.confined_open import LOOK, OpenBeneath
from duckflow.safety.files.encoding import decode, encode
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.files.listing import Kind, Listing, list_tree
from duckflow.safety.files.permit import approved_content
from duckflow.safety.files.workspace_root import WorkspaceRoot

READ_CAP = 2_000_000
"""Bytes of a file that is read as a whole."""

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class FileStatus(Frozen):
    """What a path leads to."""

    kind: Kind
    size: int
    stamp: tuple[int, ...] = ()
    """What differs as soon as someone writes to the file: number, size, times of change."""
    executable: bool = False


class Workspace(WorkspaceRoot):
    """A folder and what is in it. Blocking. `keep` is told of every change right before it is made."""

    def __init__(
        self,
        root: Path,
        *,
        denied: Iterable[Path] = (),
        opener: OpenBeneath | None = None,
        keep: Keep | None = None,
    ) -> None:
        super().__init__(root, denied, opener)
        self._keep = keep

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
        kind = kinds.get(stat.S_IFMT(found.st_mode), "other")
        return FileStatus(
            kind=kind,
            size=found.st_size,
            stamp=(found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns),
            executable=kind == "file" and bool(found.st_mode & 0o111),
        )

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

    def write_bytes(
        self, path: str, data: bytes, *, expected: str | None = ANY, mode: int | None = None
    ) -> None:
        """Replace or make a file, with the folders it needs. `expected`: digest of the content before."""
        expected = approved_content(self.relative(path), expected)
        with self._place(path, follow=True, create=expected in (ANY, None)) as place:
            atomic.replace(place, data, expected, self._keep, mode)

    def write_text(self, path: str, text: str, *, expected: str | None = ANY) -> None:
        """The same for text, as UTF-8."""
        self.write_bytes(path, encode(self.relative(path), text), expected=expected)

    def delete(self, path: str, *, expected: str | None = ANY) -> None:
        """Remove a regular file."""
        expected = approved_content(self.relative(path), expected)
        with self._place(path, follow=False) as place:
            atomic.remove(place, expected, self._keep)

    def move(self, path: str, to: str, *, expected: str | None = ANY) -> None:
        """Rename a regular file; what is at `to` is never overwritten."""
        expected = approved_content(self.relative(path), expected)
        approved_content(self.relative(to), None)
        with self._place(path, follow=False) as source:
            if atomic.regular_status(source) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            with self._place(to, follow=False, create=True) as target, _move_errors(source, target):
                atomic.move(source, target, expected, self._keep)

    def look(self, path: str) -> Content | None:
        """A file's content and permission bits as they are now, None where there is no file."""
        try:
            with self._place(path, follow=False) as place:
                return atomic.read_now(place)
        except ToolError as exc:
            if isinstance(exc.__cause__, FileNotFoundError):
                return None
            raise

    def sweep(self, path: str) -> None:
        """Remove what a killed write left beside a file; only for who knows that nobody writes there now."""
        with suppress(ToolError), self._place(path, follow=False) as place:
            atomic.sweep(place.folder, older_than_s=0)

    def drop_folder(self, path: str) -> None:
        """Remove a folder, if it is empty."""
        with suppress(ToolError), self._place(path, follow=False) as place:
            os.rmdir(place.name, dir_fd=place.folder)

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


@contextmanager
def _move_errors(source: FilePlace, target: FilePlace) -> Generator[None]:
    try:
        yield
    except FileExistsError as exc:
        raise ToolError(f"{target.path}: exists already; nothing was moved. Choose another name.") from exc
    except OSError as exc:
        if exc.errno != errno.EXDEV:
            raise
        raise ToolError(f"{target.path}: is on another disk than {source.path}; write it anew.") from exc
