"""All that a process started, however far down: finding and ending it. Standard library only."""

import os
import signal
import time
from contextlib import suppress

from duckflow.safety.descriptors import held

_PATIENCE_S = 60.0
"""Killed processes need processor time to end, and a busy machine gives it late."""


def process_tree(process: int, most: int = 100_000) -> list[int]:
    """The living or just ended processes below this one, all or a few more than `most`.

    Empty where there is no /proc.
    """
    found: list[int] = []
    waiting = [process]
    while waiting and len(found) <= most:
        below = _children(waiting.pop())
        found += below
        waiting += below
    return found


def end_process_tree(ended: dict[int, int]) -> bool:
    """Kill all that is below this process, again and again until nothing is left; False if that failed.

    Who adopts orphans misses nobody this way: a child that its parent leaves becomes ours. `ended` gets the
    status of each process that was ours.
    """
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
    """Note the status of every child that has ended."""
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if process == 0:
            return
        ended[process] = status


def exit_code(status: int) -> int:
    """As a shell says it: 128 and the signal's number for what a signal ended."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


def kill(process: int) -> None:
    """End it now, if it is still there and ours to end."""
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
    """A file below /proc; empty if its process has ended."""
    with suppress(OSError), held(os.open(f"/proc/{path}", os.O_RDONLY | os.O_CLOEXEC)) as opened:
        return os.read(opened, 1 << 16)
    return b""
