"""A real terminal for a program: a pty with a screen behind it that can be read and typed into."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping
from typing import Any, Self

import pyte

from fakes import warm as forks

PATIENCE_S = 120.0
"""Longest wait, in seconds: without it, a failing test would hang."""


def _start_plainly(command: list[str], *, terminal: bool, **options: Any) -> subprocess.Popen[Any]:
    assert terminal
    return subprocess.Popen(command, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0), **options)


class Terminal:
    """`with Terminal(["duckflow"]) as t: t.wait_for("> "); t.type("hello\\r")`."""

    def __init__(
        self,
        command: list[str],
        *,
        columns: int = 80,
        rows: int = 24,
        env: Mapping[str, str] | None = None,
        warm: bool = False,
    ) -> None:
        """With `warm`, a Duckflow program is forked instead of started (`fakes.warm`)."""
        self._command = command
        self._start = forks.start if warm else _start_plainly
        self._size = (rows, columns)
        self._env = {**os.environ, "TERM": "xterm-256color", **(env or {})}
        self.screen = pyte.HistoryScreen(columns, rows, history=2000)
        self._stream = pyte.ByteStream(self.screen)
        self.raw = b""
        self._drawn = (-1, "")

    def __enter__(self) -> Self:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        streams = {"stdin": theirs, "stdout": theirs, "stderr": theirs}
        options = {**streams, "env": self._env, "start_new_session": True}
        self.process: Any = self._start(self._command, **options, terminal=True)
        os.close(theirs)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def type(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    @property
    def text(self) -> str:
        """Lines on the screen and scrolled off it, without trailing spaces."""
        if self._drawn[0] != len(self.raw):
            gone = [self._line(line) for line in self.screen.history.top]
            whole = "\n".join([*gone, *(line.rstrip() for line in self.screen.display)])
            self._drawn = (len(self.raw), whole)
        return self._drawn[1]

    @property
    def shown(self) -> list[str]:
        """Current content of the screen, without empty lines at its end."""
        lines = [line.rstrip() for line in self.screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller."""
        self.screen.resize(rows, columns)
        self._drawn = (-1, "")
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def wait_until(self, met: Callable[[], bool], seconds: float = PATIENCE_S) -> None:
        """Read until the condition holds."""
        self._read_until(met, "what was expected", seconds)

    def settle(self, seconds: float = 0.3) -> None:
        """Read until the output pauses."""
        quiet_since, seen = time.monotonic(), len(self.raw)
        while time.monotonic() - quiet_since < seconds:
            with contextlib.suppress(AssertionError):
                self._read_until(lambda: False, "nothing", 0.05)
            if len(self.raw) != seen:
                quiet_since, seen = time.monotonic(), len(self.raw)

    def _line(self, line) -> str:
        return "".join(line[column].data for column in range(self.screen.columns)).rstrip()

    def wait_for(self, wanted: str, seconds: float = PATIENCE_S) -> None:
        """Read until this is on the screen."""
        self._read_until(lambda: wanted in self.text, f"{wanted!r} on the screen", seconds)

    def wait_for_end(self, seconds: float = PATIENCE_S) -> int:
        """Read all output until the program has ended; return its exit code."""
        self._read_until(lambda: self.process.poll() is not None, "the end of the program", seconds)
        while self._read():
            pass
        return self.process.returncode

    def _read_until(self, met, what: str, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while not met():
            if time.monotonic() > deadline:
                raise AssertionError(f"waited in vain for {what}; the screen:\n{self.text}")
            self._read()

    def _read(self) -> bool:
        """Read and draw what has arrived. Return False if nothing has."""
        ready, _, _ = select.select([self._ours], [], [], 0.05)
        try:
            got = os.read(self._ours, 65536) if ready else b""
        except OSError:
            got = b""
        self.raw += got
        self._show(got)
        return bool(got)

    def _show(self, got: bytes) -> None:
        """Draw what was written. Answer programs that ask where the cursor is."""
        drawn, *rest = got.split(b"\x1b[6n")
        self._stream.feed(drawn)
        for more in rest:
            cursor = self.screen.cursor
            os.write(self._ours, f"\x1b[{cursor.y + 1};{cursor.x + 1}R".encode())
            self._stream.feed(more)
