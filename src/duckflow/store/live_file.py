"""Shares text that is being produced in a session with other processes, through a temporary file."""

import json
import math
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.events import ActionFinished, Reply, RequestFinished, StoredEvent
from duckflow.domain.live_updates import (
    LiveUpdate,
    OutputPiece,
    ReplyPiece,
    ReplyVoid,
    ThinkingShown,
    Waiting,
)

_MOST = 400_000
_TAIL = 4_000
_ENDS = (Reply, ActionFinished, RequestFinished)


class LiveView(NamedTuple):
    """Text that a session is producing at the moment."""

    reply: str = ""
    output: str = ""
    wait_s: int = 0
    """Seconds until the model is asked again."""
    thinking: str = ""


def live_path(folder: Path, session_id: str) -> Path:
    """Return the path of the file with a session's live text."""
    return folder / f"{session_id}.live"


class LiveWriter:
    """Writes the live text of a session. The first piece creates the file; an event empties it."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self._path = path
        self._clock = clock
        self._file: int | None = None
        self._size = 0

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        """Write a live update, or empty the file if an event replaces its text."""
        if isinstance(what, StoredEvent):
            if self._size and isinstance(what.event, _ENDS):
                self._empty()
        elif isinstance(what, ReplyVoid):
            self._write({"void": True})
        elif isinstance(what, ReplyPiece):
            self._write({"reply": what.text})
        elif isinstance(what, OutputPiece):
            self._write({"output": what.text[-_TAIL:]})
        elif isinstance(what, ThinkingShown):
            self._write({"thinking": what.text})
        elif isinstance(what, Waiting) and what.wait_s:
            self._write({"until": self._clock() + what.wait_s})

    def close(self) -> None:
        """Delete the file."""
        if self._file is not None:
            os.close(self._file)
            self._path.unlink(missing_ok=True)
            self._file = None

    def _write(self, piece: dict[str, object]) -> None:
        with suppress(OSError):
            if self._file is None:
                self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._file = os.open(self._path, flags, 0o600)
            if self._size > _MOST:
                self._empty()
            self._size += os.write(self._file, json.dumps(piece).encode() + b"\n")

    def _empty(self) -> None:
        with suppress(OSError):
            if self._file is not None:
                os.ftruncate(self._file, 0)
        self._size = 0


def read_live(path: Path, clock: Callable[[], float] = time.time) -> LiveView:
    """Return the text that a session is producing, if any."""
    reply: list[str] = []
    thinking: list[str] = []
    output, until = "", 0.0
    with suppress(OSError):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):  # the last line may be incomplete
                piece = json.loads(line)
                if "void" in piece:
                    reply.clear()
                    thinking.clear()
                reply.append(piece.get("reply", ""))
                thinking.append(piece.get("thinking", ""))
                output = (output + piece.get("output", ""))[-_TAIL:]
                until = float(piece.get("until", 0.0))
    wait_s = math.ceil(max(until - clock(), 0.0)) if until else 0
    return LiveView("".join(reply), output, wait_s, "".join(thinking))
