"""Find and kill all processes below a process, at any depth. Standard library only."""

import os
import signal
import time
from contextlib import suppress

from duckflow.safety.descriptors import closing_fd

_PATIENCE_S = 60.0
"""Time limit in seconds. Killed processes need processor time to end, which a busy machine grants late."""


def process_tree(process: int, most: int = 100_000) -> list[int]:
    """Return the processes below this one; stop after about `most`. Empty on systems without /proc."""
    found: list[int] = []
    waiting = [process]
    while waiting and len(found) <= most:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def end_process_tree(ended: dict[int, int]) -> bool:
    """Kill all processes below this one until none is left. Add the exit status of children to `ended`."""
    until = time.monotonic() + _PATIENCE_S
    while time.monotonic() < until:
        reap(ended)
        left = process_tree(os.getpid())
        if not left:
            return True
        for process in left:
            kill(process)
        time.sleep(0.0005)
    return False


def reap(ended: dict[int, int]) -> None:
    """Add the exit status of every child that has ended to `ended`."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process == 0:
            return
        ended[process] = status


def exit_code(status: int) -> int:
    """Return the exit code as a shell reports it: 128 plus the signal's number if a signal ended it."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill(process: int) -> None:
    """Kill a process, if it still exists and may be killed."""
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _children(process: int) -> list[int]:
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return []
    return [
        int(child) for thread in threads for child in read_proc(f"{process}/task/{thread}/children").split()
    ]


def read_proc(path: str) -> bytes:
    """Read a file below /proc. Empty if its process has ended."""
    with suppress(OSError), closing_fd(os.open(f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC)) as opened:
        return os.read(opened, 1 << 16)
    return b""
