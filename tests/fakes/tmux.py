"""The conversation in a window of tmux, a real terminal whose size can change while it works."""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from fakes.engine import write_script

_PATIENCE_S = 30.0
"""Only there so that a failure ends."""


class Window:
    """`with Window(tmp_path, ["duckflow"]) as window: window.wait_for("> "); window.say("hello")`."""

    def __init__(
        self, place: Path, command: Sequence[str], *, columns: int = 80, env: Mapping[str, str] | None = None
    ) -> None:
        self._tmux = ["tmux", "-S", str(place / "tmux"), "-f", os.devnull]
        self._env = {**os.environ, "TMUX_TMPDIR": str(place), "PYTHONPATH": os.pathsep.join(sys.path)}
        self._given = [f"{name}={value}" for name, value in (env or {}).items()]
        self._command = command
        self._columns = columns

    def __enter__(self) -> Self:
        line = shlex.join(["env", *self._given, *self._command])
        self._run("new-session", "-d", "-s", "w", "-x", str(self._columns), "-y", "30", line)
        self._run("set-option", "-t", "w", "remain-on-exit", "on")
        self._run("set-option", "-s", "escape-time", "0")
        return self

    def __exit__(self, *_: object) -> None:
        subprocess.run([*self._tmux, "kill-server"], env=self._env, capture_output=True, check=False)

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
        """All that is and was in the window."""
        lines = self._run("capture-pane", "-p", "-t", "w", "-S", "-400").split("\n")
        return "\n".join(line.rstrip() for line in lines).rstrip("\n")

    @property
    def ended(self) -> bool:
        """Whether the program is gone."""
        return self._run("display-message", "-p", "-t", "w", "#{pane_dead}").strip() == "1"

    def wait(self, met: Callable[[str], bool]) -> str:
        """Look until this is so; what is shown then."""
        deadline = time.monotonic() + _PATIENCE_S
        while not met(shown := self.text):
            assert time.monotonic() < deadline, f"waited in vain; the window:\n{shown}"
            time.sleep(0.05)
        return shown

    def wait_for(self, *wanted: str) -> str:
        """Look until all of this is shown."""
        return self.wait(lambda shown: all(one in shown for one in wanted))

    def wait_for_prompt(self) -> str:
        """Look until the prompt is there, empty, and nothing is being done."""
        return self.wait(_idle)

    def wait_for_end(self) -> None:
        """Look until the program is gone."""
        self.wait(lambda _: self.ended)


def _idle(shown: str) -> bool:
    above, prompt, bar = shown.rpartition("\n>\n")
    return bool(prompt) and bar.startswith("[ ") and "🦆" not in above.rpartition("\n")[2]


def conversation_in(
    folder: Path,
    *answers: str | dict[str, Any],
    language: str = "en",
    args: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    columns: int = 80,
) -> Window:
    """A conversation about this folder on a scripted model, in a window of its own."""
    script = write_script(folder.parent / "script.jsonl", answers)
    where = [*args, "--workspace", str(folder), "--model", f"scripted:{script}"]
    return Window(
        folder.parent,
        [sys.executable, "-m", "duckflow", *where],
        env={"DUCKFLOW_LANGUAGE": language, **(env or {})},
        columns=columns,
    )
