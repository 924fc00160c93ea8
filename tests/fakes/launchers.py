"""The launcher of a sandbox as the system sees it: a child process with its folder as the last argument."""

import os
from pathlib import Path
from typing import NamedTuple


class RunningLauncher(NamedTuple):
    """A launcher's process, and the temporary folder of its commands."""

    pid: int
    temporary: Path

    def runs(self) -> bool:
        """Return whether the process has not ended. Its command line is gone before that."""
        try:
            status = Path(f"/proc/{self.pid}/stat").read_text("utf-8", "replace")
        except OSError:
            return False
        return status.rpartition(")")[2].split()[0] not in "ZX"


def running_launcher(parent: int | None = None) -> RunningLauncher:
    """Return the launcher that this process, or another one, started last."""
    numbers = (int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit())
    above = parent or os.getpid()
    found = [
        (_started(pid, above), pid, line)
        for pid in numbers
        if "child.launcher" in (line := _command_line(pid))
    ]
    _, pid, line = max(one for one in found if one[0])
    return RunningLauncher(pid, Path(line.rstrip("\0").rpartition("\0")[2]))


def _command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8", "replace")
    except OSError:
        return ""


def _started(pid: int, parent: int) -> int:
    """Return when a child of this parent was started, 0 for other processes."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return 0
    return int(words[19]) if int(words[1]) == parent else 0
