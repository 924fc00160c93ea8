"""Files of one model in the cache: the finished file, the mark that it is verified, a partial one, the lock.

The `.part` file is always a beginning of the finished file, whichever source it came from. So any source can
resume where another one, or a killed process, stopped.
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
    """Progress in bytes of the finished file. The source `check` means that the hash is being verified."""

    done_bytes: int
    total_bytes: int
    source: Source


Report = Callable[[Progress], None]


class WeightsFiles:
    """Files of one model in `folder`."""

    def __init__(self, weights: Weights, folder: Path) -> None:
        self.weights = weights
        self.folder = folder
        self.file = folder / weights.file
        self.part = folder / f"{weights.file}.part"
        self._mark = folder / f"{weights.file}.ok"
        self._lock = folder / f"{weights.file}.lock"
        self._fetches = f"{weights.file}.fetch-"

    def installed(self) -> Path | None:
        """Return the finished file if it is intact, else None. A mark file saves hashing it every time."""
        try:
            found = self.file.stat()
            if self._is_marked(found):
                return self.file
            size = found.st_size
            if size != self.weights.size or digest(self.file, 0, size) != self.weights.sha256:
                return None
        except OSError:
            return None
        self._write_mark(found)
        return self.file

    def gathered(self) -> int:
        """Return the size of the `.part` file."""
        try:
            return self.part.stat().st_size
        except FileNotFoundError:
            return 0

    @contextmanager
    def appending(self) -> Generator[BinaryIO]:
        """Open the `.part` file for appending, and sync it to the disk on exit."""
        with self.part.open("ab") as out:
            try:
                yield out
            finally:
                out.flush()
                os.fsync(out.fileno())

    def cut(self, length: int) -> None:
        """Truncate the `.part` file to `length`."""
        if length == 0:
            self.part.unlink(missing_ok=True)
        elif self.gathered() > length:
            os.truncate(self.part, length)

    def keep_good_parts(self) -> int:
        """Return the number of complete, correct parts in the `.part` file, and cut off the rest."""
        at = count = 0
        for part in self.weights.parts:
            if self.gathered() < at + part.size or digest(self.part, at, part.size) != part.sha256:
                break
            at, count = at + part.size, count + 1
        self.cut(at)
        return count

    def finish(self, report: Report) -> bool:
        """Verify the `.part` file, sync it and give it its final name. Return False if it is wrong."""
        size = self.weights.size
        report(self.progress(size, "check"))
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
        """Delete all files of the model. Return True if there was a finished file."""
        there = self.file.exists()
        for path in (self.file, self._mark, self.part):
            path.unlink(missing_ok=True)
        self.sweep()
        return there

    def sweep(self) -> None:
        """Delete download folders left by killed installations."""
        for left in self.folder.glob(f"{self._fetches}*"):
            shutil.rmtree(left, ignore_errors=True)

    def fetching(self) -> TemporaryDirectory[str]:
        """Return a temporary folder for downloads, on the disk whose free space was checked."""
        return TemporaryDirectory(prefix=self._fetches, dir=self.folder, ignore_cleanup_errors=True)

    @contextmanager
    def locked(self) -> Generator[None]:
        """Lock the model against other installs and removals. The system frees a killed process's lock."""
        with self._lock.open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as exc:
                raise ProviderError("weights.busy", name=self.weights.name) from exc
            yield

    def progress(self, done: int, source: Source) -> Progress:
        """Return the progress of this model, capped at its size."""
        total = self.weights.size
        return Progress(done_bytes=min(done, total), total_bytes=total, source=source)

    def _is_marked(self, found: os.stat_result) -> bool:
        with suppress(OSError, ValueError):
            return json.loads(self._mark.read_bytes()) == self._marking(found)
        return False

    def _marking(self, found: os.stat_result) -> dict[str, object]:
        # Users can set mtime, but only the system sets ctime.
        when = {"mtime_ns": found.st_mtime_ns, "ctime_ns": found.st_ctime_ns, "inode": found.st_ino}
        return {"sha256": self.weights.sha256, "size": found.st_size, **when}

    def _write_mark(self, found: os.stat_result) -> None:
        # Without a mark the file is hashed again, which is slower but just as safe.
        with suppress(OSError):
            self._mark.write_text(json.dumps(self._marking(found)), encoding="utf-8")


def digest(path: Path, start: int, length: int) -> str:
    """Return the SHA-256 of `length` bytes of a file from `start`."""
    hashed = hashlib.sha256()
    with path.open("rb") as file:
        file.seek(start)
        while length > 0 and (chunk := file.read(min(CHUNK, length))):
            hashed.update(chunk)
            length -= len(chunk)
    return hashed.hexdigest()
