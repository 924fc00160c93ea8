"""The conversation in a window of tmux, a real terminal whose size can change while it works."""

import itertools
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fakes.conversation import program
from fakes.engine import write_script

_PATIENCE_S = 120.0
"""Longest wait, in seconds: without it, a failing test would hang."""
_SERVERS = itertools.count()
TURNING = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
"""Spinner characters shown during work."""


class Window:
    """`with Window(tmp_path, ["duckflow"]) as window: window.wait_for("> "); window.say("hello")`."""

    def __init__(
        self,
        place: Path,
        command: Sequence[str],
        *,
        columns: int = 80,
        env: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._tmux = ["tmux", "-S", str(place / f"tmux{next(_SERVERS)}"), "-f", os.devnull]
        self._env = {**os.environ, "TMUX_TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
        self._given = [f"{name}={value}" for name, value in (env or {}).items()]
        self._command = command
        self._columns = columns
        self._folder = folder or place

    def __enter__(self) -> Self:
        line = shlex.join(["env", *self._given, *self._command])
        self._run(
            "new-session",
            "-d",
            "-s",
            "w",
            "-x",
            str(self._columns),
            "-y",
            "30",
            "-c",
            str(self._folder),
            line,
        )
        self._run("set-option", "-t", "w", "remain-on-exit", "on")
        self._run("set-option", "-s", "escape-time", "0")
        self._program = Path("/proc", self._run("display-message", "-p", "-t", "w", "#{pane_pid}").strip())
        return self

    def __exit__(self, *_: object) -> None:
        """Close the window, and wait for the end of the program."""
        subprocess.run([*self._tmux, "kill-server"], env=self._env, capture_output=True, check=False)
        deadline = time.monotonic() + _PATIENCE_S
        while self._runs():
            assert time.monotonic() < deadline, "the window is closed, and the program still runs"
            time.sleep(0.02)

    def _runs(self) -> bool:
        try:
            return bool((self._program / "cmdline").read_bytes())
        except OSError:
            return False

    def _run(self, *arguments: str) -> str:
        told = subprocess.run(
            [*self._tmux, *arguments], env=self._env, capture_output=True, text=True, check=True
        )
        return told.stdout

    def keys(self, *keys: str) -> None:
        """Press keys, by tmux's names or as they are."""
        self._run("send-keys", "-t", "w", *keys)

    def say(self, line: str) -> None:
        """Type a line and send it."""
        self._run("send-keys", "-t", "w", "-l", line)
        self.keys("Enter")

    def resize(self, columns: int) -> None:
        """Make the window wider or narrower."""
        self._run("resize-window", "-t", "w", "-x", str(columns), "-y", "30")

    @property
    def text(self) -> str:
        """Lines in the window and scrolled off it."""
        lines = self._run("capture-pane", "-p", "-t", "w", "-S", "-400").split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")

    @property
    def ended(self) -> bool:
        """True if the program has ended."""
        return self._run("display-message", "-p", "-t", "w", "#{pane_dead}").strip() == "1"

    def wait(self, met: Callable[[str], bool]) -> str:
        """Look until the condition holds; return the text shown then."""
        deadline = time.monotonic() + _PATIENCE_S
        while not met(shown := self.text):
            assert time.monotonic() < deadline, f"waited in vain; the window:\n{shown}"
            time.sleep(0.1)  # each look starts a program
        return shown

    def wait_for(self, *wanted: str) -> str:
        """Look until all of this is shown."""
        return self.wait(lambda shown: all(one in shown for one in wanted))

    def wait_for_prompt(self) -> str:
        """Look until the prompt is empty and no work is running."""
        return self.wait(idle)

    def wait_for_end(self) -> None:
        """Look until the program has ended."""
        self.wait(lambda _: self.ended)


def idle(shown: str) -> bool:
    """Return whether the prompt is empty and no work is running."""
    above, prompt, bar = shown.rpartition("\n>\n")
    busy = any(sign in above.rpartition("\n")[2] for sign in TURNING)
    return bool(prompt) and " · " in bar and not busy


def conversation_in(
    folder: Path,
    *answers: str | dict[str, Any],
    language: str = "en",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
) -> Window:
    """Open a window with a conversation about this folder, on a scripted model."""
    script = write_script(folder.parent / "script.jsonl", answers)
    command, quiet = program()
    return Window(
        folder.parent,
        [*command, *args, "--model", f"scripted:{script}"],
        env={"DUCKFLOW_LANGUAGE": language, **quiet, **(env or {})},
        folder=folder,
    )
