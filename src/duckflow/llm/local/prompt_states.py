"""What an embedded model has read, kept on disk in the runtime's own form, so that it is never read twice.

Reading a prompt is the slow part of a small machine's answer. Two kinds of states are kept: of the beginning
that all sessions share, and of a session as it was left. A state is only found again for the same model file,
runtime, window and texts; the runtime itself compares it with a prompt token by token and uses what agrees.
"""

import hashlib
import json
import os
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Literal

from duckflow.config.places import cache_dir

StateKind = Literal["beginning", "session"]

_FOLDER = "prompts"
_HEAD = 1024 * 1024
_MEGABYTE = 1_000_000


class PromptStates:
    """The states of one model. Nothing here raises: without a state a prompt is read, as ever. Blocking."""

    def __init__(self, folder: Path, model: Path, window: int, most_mb: int) -> None:
        self.folder = folder
        self._most = most_mb * _MEGABYTE
        from importlib.metadata import version  # noqa: PLC0415 - slow, and only for embedded models

        self._key = [_identity(model), version("xllamacpp"), window]

    def name(self, kind: StateKind, *texts: str) -> str:
        """The file for these texts, by all that must be the same."""
        told = json.dumps([*self._key, *texts])
        return f"{kind}-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.state"

    def draft(self) -> str:
        """A file for a state that is being written; `keep` gives it its name."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return f"draft-{token_hex(8)}.state"

    def has(self, name: str) -> bool:
        """Whether there is such a state; one that is used counts as new."""
        try:
            os.utime(self.folder / name)
        except OSError:
            return False
        return True

    def keep(self, draft: str, name: str) -> None:
        """A state that was written whole; the oldest ones go if there are too many."""
        with suppress(OSError):
            (self.folder / draft).replace(self.folder / name)
        self._prune()

    def drop(self, name: str) -> None:
        """Throw a state away."""
        with suppress(OSError):
            (self.folder / name).unlink()

    def _prune(self) -> None:
        found: list[tuple[float, int, Path]] = []
        for path in self.folder.glob("*.state"):
            with suppress(OSError):
                status = path.stat()
                found.append((status.st_mtime, status.st_size, path))
        kept = 0
        for _, size, path in sorted(found, reverse=True):
            kept += size
            if kept > self._most:
                self.drop(path.name)


def states_folder() -> Path:
    """Where states are kept."""
    return cache_dir() / _FOLDER


def forget_sessions(folder: Path | None = None) -> None:
    """Throw away all that is kept of sessions; what all of them share stays."""
    for path in (folder or states_folder()).glob("session-*.state"):
        with suppress(OSError):
            path.unlink()


def _identity(model: Path) -> list[object]:
    """What makes a model's file another one. Hashing all of a gigabyte would cost more than it saves."""
    try:
        status = model.stat()
        with model.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(status.st_size - _HEAD, 0))
            digest = hashlib.sha256(head + file.read(_HEAD)).hexdigest()
    except OSError:
        return [token_hex(8)]
    return [digest, status.st_size, status.st_mtime_ns]
