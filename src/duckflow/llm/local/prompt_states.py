"""Saved prompt states of an embedded model, because evaluating a prompt is slow on a small machine.

A `beginning` is the text with which all prompts begin; a `session` is the last prompt of one session. The
runtime compares a state with the new prompt token by token, and evaluates only what follows the common part.
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

_HEAD = 1024 * 1024
_MEGABYTE = 1_000_000


class PromptStates:
    """Saved states of one model. Methods block. None raises OSError, because a lost state only costs time."""

    def __init__(self, folder: Path, model: Path, window: int, most_mb: int) -> None:
        self.folder = folder
        self._most = most_mb * _MEGABYTE
        from importlib.metadata import version  # noqa: PLC0415 - slow, and only for embedded models

        self._key = [_identity(model), version("xllamacpp"), window]

    def name(self, kind: StateKind, *texts: str) -> str:
        """Return the file name of a state: a hash of these texts, the model and the window."""
        told = json.dumps([*self._key, *texts])
        return f"{kind}-{hashlib.sha256(told.encode('utf-8', 'surrogatepass')).hexdigest()[:40]}.state"

    def draft(self) -> str:
        """Return the name of a new file for the runtime to write a state to; `keep` renames it."""
        with suppress(OSError):
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return f"draft-{token_hex(8)}.state"

    def has(self, name: str) -> bool:
        """Return True if the state exists, and mark it as recently used."""
        try:
            os.utime(self.folder / name)
        except OSError:
            return False
        return True

    def keep(self, draft: str, name: str) -> None:
        """Give a completely written state its name, and delete the oldest states above the size limit."""
        with suppress(OSError):
            (self.folder / draft).replace(self.folder / name)
        self._prune()

    def drop(self, name: str) -> None:
        """Delete a state."""
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
    """Return the folder of the states."""
    return cache_dir() / "prompts"


def forget_sessions(folder: Path | None = None) -> None:
    """Delete the states of sessions; those of the common beginning stay."""
    for path in (folder or states_folder()).glob("session-*.state"):
        with suppress(OSError):
            path.unlink()


def _identity(model: Path) -> list[object]:
    """Return values that identify a model file. Hashing a whole gigabyte would cost more than it saves."""
    try:
        status = model.stat()
        with model.open("rb") as file:
            head = file.read(_HEAD)
            file.seek(max(status.st_size - _HEAD, 0))
            digest = hashlib.sha256(head + file.read(_HEAD)).hexdigest()
    except OSError:
        return [token_hex(8)]
    return [digest, status.st_size, status.st_mtime_ns]
