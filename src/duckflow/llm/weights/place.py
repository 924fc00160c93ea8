"""The files of one model in the cache: the finished one, its mark, what is still being gathered, the lock.

What is gathered grows in one `.part` file that is always a beginning of the finished one, whichever source
it came from, so that any source can go on where another one, or a killed process, left off.
"""

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO, Literal

from duckflow.domain.errors import ProviderError
from duckflow.domain.frozen import Frozen
from duckflow.llm.weights.catalogue import Weights

CHUNK = 1024 * 1024

Source = Literal["file", "hub", "wheels", "check"]


class Progress(Frozen):
    """Bytes of the finished file that are there. `source` says from where they come; `check` is the hash."""

    done_bytes: int
    total_bytes: int
    source: Source


Report = Callable[[Progress], None]


class WeightsFiles:
    """Where one model's weights are, or come to be."""

    def __init__(self, weights: Weights, folder: Path) -> None:
        self.weights = weights
        self.folder = folder
        self.file = folder / weights.file
        self.part = folder / f"{weights.file}.part"
        self._mark = folder / f"{weights.file}.ok"
        self._lock = folder / f"{weights.file}.lock"
        self._fetches = f"{weights.file}.fetch-"

    def installed(self) -> Path | None:
        """The finished file, if it is what it should be. Hashed once; a mark saves later starts from it."""
        try:
            found = self.file.stat()
            if self._marked() == self._marking(found):
                return self.file
            if (
                found.st_size != self.weights.size
                or digest(self.file, 0, found.st_size) != self.weights.sha256
            ):
                return None
        except OSError:
            return None
        self._write_mark(found)
        return self.file

    def gathered(self) -> int:
        """Bytes in the `.part` file."""
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def appending(self) -> Generator[BinaryIO]:
        """The `.part` file, open at its end; what was written is on the disk afterwards."""
        with self.part.open("ab") as out:
            try:
                yield out
            finally:
                out.flush()
                os.fsync(out.fileno())

    def cut(self, length: int) -> None:
        """Drop what is past `length` of what was gathered."""
        if length == 0:
            self.part.unlink(missing_ok=True)
        elif self.gathered() > length:
            os.truncate(self.part, length)

    def keep_good_parts(self) -> int:
        """How many whole parts were gathered rightly; anything after them is dropped."""
        at = count = 0
        for part in self.weights.parts:
            if self.gathered() < at + part.size or digest(self.part, at, part.size) != part.sha256:
                break
            at, count = at + part.size, count + 1
        self.cut(at)
        return count

    def finish(self, report: Report) -> bool:
        """Give the gathered file its name if it is the right one, whole and on the disk."""
        size = self.weights.size
        report(Progress(done_bytes=size, total_bytes=size, source="check"))
        if self.gathered() != size or digest(self.part, 0, size) != self.weights.sha256:
            return False
        with self.part.open("rb") as gathered:
            os.fsync(gathered.fileno())
        self.part.replace(self.file)
        self._write_mark(self.file.stat())
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        return True

    def delete(self) -> bool:
        """Remove all of it; whether there was a finished file."""
        there = self.file.exists()
        for path in (self.file, self._mark, self.part):
            path.unlink(missing_ok=True)
        self.sweep()
        return there

    def sweep(self) -> None:
        """Remove what a killed installation left of its downloads."""
        for left in self.folder.glob(f"{self._fetches}*"):
            shutil.rmtree(left, ignore_errors=True)

    def fetching(self) -> TemporaryDirectory[str]:
        """A folder for downloads, gone afterwards; on the same disk, whose free space was looked at."""
        return TemporaryDirectory(prefix=self._fetches, dir=self.folder, ignore_cleanup_errors=True)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Nobody else installs or removes this model meanwhile. A killed holder holds nothing."""
        with self._lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise ProviderError("weights.busy", name=self.weights.name) from exc
            yield

    def progress(self, done: int, source: Source) -> Progress:
        """A progress of this model, never past its end."""
        total = self.weights.size
        return Progress(done_bytes=min(done, total), total_bytes=total, source=source)

    def _marked(self) -> object:
        try:
            return json.loads(self._mark.read_bytes())
        except (OSError, ValueError):
            return None

    def _marking(self, found: os.stat_result) -> dict[str, object]:
        # Anyone can set the other times; that of the last change of any kind, only the system can.
        when = {"mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns, "inode": found.st_ino}
        return {"sha256": self.weights.sha256, "size": found.st_size, **when}

    def _write_mark(self, found: os.stat_result) -> None:
        # Without a mark the file is hashed again, which is slower and no less right.
        with suppress(OSError):
            self._mark.write_text(json.dumps(self._marking(found)), encoding="utf-8")


def digest(path: Path, start: int, length: int) -> str:
    """The SHA-256 of `length` bytes of a file from `start`."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while length > 0 and (chunk := file.read(min(CHUNK, length))):
            hashed.update(chunk)
            length -= len(chunk)
    return hashed.hexdigest()
