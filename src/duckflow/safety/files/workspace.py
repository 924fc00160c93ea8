"""File access below one open folder, with size limits. Writes are atomic; failures become ToolErrors."""

import errno
import hashlib
import os
import stat
from collections.abc import Collection, Generator, Iterable, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.frozen import Frozen
from duckflow.safety.descriptors import closing_fd
from duckflow.safety.files import atomic
from duckflow.safety.files.atomic import ANY, LARGEST, FileContent, FilePlace, Keep
from duckflow.safety.files.confined_open import LOOK, ConfinedFolder, OpenInside
from duckflow.safety.files.encoding import EncodedText, decode, encode
from duckflow.safety.files.errors import as_tool_errors
from duckflow.safety.files.git_directory import outer_git_directory
from duckflow.safety.files.hard_links import names_of
from duckflow.safety.files.listing import MOST_IN_A_FOLDER, Kind, Listing, list_tree
from duckflow.safety.files.path_states import PathStates
from duckflow.safety.files.temporary import sweep
from duckflow.safety.paths import relative_path
from duckflow.safety.policy.protected import STRENGTH, Protection, protection_of, strongest, within

READ_CAP = 2_000_000
"""Largest file, in bytes, that is read as a whole."""

_DELETED = " (deleted)"  # suffix that Linux gives the name of an open file that was removed
_UNUSABLE = {errno.ENOENT: "workspace.missing", errno.ENOTDIR: "workspace.not_a_folder"}
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class FileStatus(Frozen):
    """Kind, size and version of the file that a path leads to."""

    kind: Kind
    size: int
    stamp: tuple[int, ...] = ()
    """Inode, size and times; differs after any write to the file."""
    executable: bool = False


class Workspace:
    """Folder for file access. Paths are relative to it, and links can't lead out of it. Blocking."""

    def __init__(self, root: Path, *, denied: Iterable[Path] = (), opener: OpenInside | None = None) -> None:
        self.root = Path(os.path.realpath(root))
        """Real absolute path of the folder at the start of the session."""
        self._names = _names_of(root)
        self.denied = tuple(name for folder in denied for name in _names_of(folder))
        """Absolute paths of folders that are closed to tools."""
        try:
            self._confined = ConfinedFolder(self.root, opener)
        except OSError as exc:
            key = _UNUSABLE.get(exc.errno or 0, "workspace.no_access")
            raise UsageError(key, path=str(root)) from exc
        self.identity = self._confined.identity
        """Device and inode number, which stay the same when the folder is renamed."""
        self._linked: dict[tuple[int, int, int], tuple[str, ...]] = {}
        self.paths = PathStates(self._confined, outer_git_directory(str(self.root)))
        """States of real paths, for undo and recovery."""

    def relative(self, path: str, *, folder: bool = False) -> str:
        """Return a path that the model wrote, as relative to the root. Raise ToolError if it is not valid."""
        return relative_path(path, self._names, folder=folder)

    def protection(self, path: str) -> Protection:
        """Return the stronger of two protections: that of the path as written, and that of its real path."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            real = self._confined.resolve(written)
            linked = self._linked_protection(real)
        return strongest(self._protection(written), self._protection(real), linked)

    def real(self, path: str) -> str:
        """Return the path to which a path leads in the workspace."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            return self._confined.resolve(written)

    def _protection(self, path: str) -> Protection:
        absolute = f"{self.root}/{path}"
        if any(within(absolute, folder) for folder in self.denied):
            return "denied"
        found = protection_of(path)
        if found == "none" and path.endswith(_DELETED):
            return protection_of(path.removesuffix(_DELETED))
        return found

    def _linked_protection(self, path: str) -> Protection:
        """Return the strongest protection of the names that a file has by hard links, besides its path."""
        try:
            with closing_fd(self._confined.open(path, LOOK)) as opened:
                return self._protection_of_names(os.fstat(opened))
        except OSError:
            return "none"

    def _protection_of_names(self, status: os.stat_result) -> Protection:
        return strongest("none", *map(self._protection, self._names_of_file(status)))

    def _names_of_file(self, status: os.stat_result) -> tuple[str, ...]:
        """Return the names of a file that has several, as far as they lie in the workspace."""
        if not stat.S_ISREG(status.st_mode) or status.st_nlink < 2:
            return ()
        known = status.st_ino, status.st_dev, status.st_ctime_ns  # a new name changes the time
        if known not in self._linked:
            self._linked = {known: tuple(names_of(str(self.root), status.st_ino, status.st_dev))}
        return self._linked[known]

    def read_rules(self, path: str, *, cap: int) -> str:
        """Return the text of a file that is read without asking. Raise ToolError if it may be a secret."""
        written = self.relative(path)
        if STRENGTH[self.protection(written)] > STRENGTH["guarded"]:
            raise ToolError(f"{written}: is a protected place, and rules are sent to the model.")
        with self._open(written, _READ) as opened:
            status = os.fstat(opened)
            if status.st_nlink > len(self._names_of_file(status) or (written,)):
                raise ToolError(
                    f"{written}: is a hard link to a file outside this folder; make it a file of its own."
                )
            atomic.check_regular(status, written, cap)
            return decode(written, atomic.read_all(opened, written, cap)).text

    def _admit(self, path: str, real: str) -> None:
        """Raise ToolError if either path is closed, or `real` has stronger protection than `path`."""
        written = self._protection(path)
        found = written if real == path else self._protection(real)
        if "denied" in (written, found):
            raise ToolError(f"{path}: belongs to Duckflow itself and is closed to tools.", "reason.own")
        if STRENGTH[found] > STRENGTH[written]:
            raise ToolError(f"{path}: leads to {real}, which is protected; name that path itself.")

    def _admit_names(self, path: str, status: os.stat_result) -> None:
        found = self._protection_of_names(status)
        if STRENGTH[found] > max(STRENGTH[self._protection(path)], STRENGTH["guarded"]):
            name = next(one for one in self._names_of_file(status) if self._protection(one) == found)
            raise ToolError(f"{path}: is the same file as {name}, which is protected; name that path itself.")

    def close(self) -> None:
        """Close the folder."""
        self.paths.close()
        self._confined.close()

    def status(self, path: str) -> FileStatus | None:
        """Return the status of a path, None if nothing exists."""
        written = self.relative(path, folder=True)
        with _or_missing(), self._open(written, LOOK) as opened:
            return _status_of(os.fstat(opened))
        return None

    def read_bytes(self, path: str, *, cap: int = READ_CAP) -> bytes:
        """Return the content of a regular file of at most `cap` bytes."""
        written = self.relative(path)
        with self._open(written, _READ) as opened:
            atomic.check_regular(os.fstat(opened), written, cap)
            return atomic.read_all(opened, written, cap)

    @contextmanager
    def _open(self, written: str, flags: int) -> Generator[int]:
        with as_tool_errors(written), closing_fd(self._confined.open(written, flags)) as opened:
            self._admit(written, self._confined.locate(opened, written))
            self._admit_names(written, os.fstat(opened))
            yield opened

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
        """Create or replace a file and its folders. `expected` is the SHA-256 of the current content."""
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
            with self._place(to, follow=False, create=True) as target:
                try:
                    atomic.move(source, target, expected, keep)
                except FileExistsError as exc:
                    there = f"{target.path}: exists already; nothing was moved. Choose another name."
                    raise ToolError(there) from exc
                except OSError as exc:
                    if exc.errno != errno.EXDEV:
                        raise
                    apart = f"{target.path}: is on another disk than {source.path}; write it there."
                    raise ToolError(apart) from exc

    def look(self, path: str) -> FileContent | None:
        """Return a file's current content and permission bits, None if there is no file."""
        with _or_missing(), self._place(path, follow=False) as place:
            return atomic.read_now(place)
        return None

    def sweep(self, path: str) -> None:
        """Remove temporary files of killed writes beside a file. No other write may be running."""
        with suppress(ToolError), self._place(path, follow=False) as place:
            sweep(place.folder, older_than_s=0)

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
        each: int = MOST_IN_A_FOLDER,
        skip: Collection[str] = (),
    ) -> Listing:
        """List the entries below a folder, without following links. `each` limits the names per folder."""
        written = self.relative(path, folder=True)
        with as_tool_errors(written):
            start = self._confined.resolve(written)
            self._admit(written, start)
            opened = self._confined.open_folder
            found = list_tree(opened, start, depth=depth, limit=limit, each=each, skip=skip)
        return found._replace(
            entries=tuple(one for one in found.entries if self._protection(one.path) != "denied")
        )

    def digest(self, path: str) -> str | None:
        """Return the SHA-256 of a file's content, None if there is no file."""
        with _or_missing():
            return hashlib.sha256(self.read_bytes(path, cap=LARGEST)).hexdigest()
        return None

    @contextmanager
    def _place(self, path: str, *, follow: bool, create: bool = False) -> Generator[FilePlace]:
        """Open the folder of a file and yield its location. With `follow`, a link leads to its target."""
        written = self.relative(path)
        with as_tool_errors(written):
            above, _, name = written.rpartition("/")
            if follow:
                real = self._confined.resolve(written)
            else:
                folder = self._confined.resolve(above or ".")
                real = name if folder == "." else f"{folder}/{name}"
            self._admit(written, real)
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
    try:
        yield
    except ToolError as exc:
        if not isinstance(exc.__cause__, FileNotFoundError):
            raise


def _names_of(folder: Path) -> tuple[str, str]:
    """Return the real path of a folder and the absolute path as the user wrote it."""
    return os.path.realpath(folder), str(folder.absolute())


def refuse_unsuitable_folder(
    folder: Path, env: Mapping[str, str], closed: Iterable[Path], copies: Path | None = None
) -> None:
    """Raise UsageError for the home folder, a folder above it, and folders of Duckflow (SAFETY 21).

    What lies in `copies` is no folder of Duckflow: the fleet works there.
    """
    root, home = os.path.realpath(folder), env.get("HOME", "")
    if root == "/" or (home and Path(os.path.realpath(home)).is_relative_to(root)):
        raise UsageError("workspace.too_wide", path=str(folder.absolute()))
    if copies is not None and Path(os.path.realpath(copies)) in Path(root).parents:
        return
    if any(within(root, os.path.realpath(one)) for one in closed):
        raise UsageError("workspace.own_folder", path=str(folder.absolute()))
