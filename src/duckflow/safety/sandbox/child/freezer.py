"""Hold all processes of some commands still while their effects are read and applied. Standard library only.

The cgroup freezer does this where the user may create a cgroup. Elsewhere each process is stopped by a signal
and checked: a process can wake itself up from that by a timer, so the number of times it ran is compared, and
a process that ran is killed. Supervisors are stopped last, because a command may wait for one in a rename.
"""

import os
import re
import signal
import time
from collections.abc import Iterable
from contextlib import suppress

from duckflow.safety.sandbox.child.cgroups import make_cgroup, own_cgroups, read, write
from duckflow.safety.sandbox.child.process_tree import kill, process_tree, read_proc

_PATIENCE_S = 5.0
_PAUSE_S = 0.0005
_ENDED = b"ZXx"
_STILL = b"Tt" + _ENDED
_WAITING = b"D"
"""State of a process that waits in the kernel, such as for a child that has not yet become a program."""

_SWITCHES = re.compile(rb"ctxt_switches:\s+(\d+)")
_NAMES = re.compile(rb"^NSpid:(.*)$", re.MULTILINE)
_V2, _V1 = ("cgroup.freeze", "1", "0"), ("freezer.state", "FROZEN", "THAWED")

_Ran = dict[int, tuple[bytes, tuple[bytes, ...]]]
"""State of each process, and the number of times that each of its threads ran."""


class Freezer:
    """Freezes the processes of commands below this process, and lets them continue."""

    def __init__(self) -> None:
        self.frozen = False
        self._cgroup: _Cgroup | None = None
        self._abandoned: _Cgroup | None = None
        self._stopped: list[int] = []
        self._supervisors: list[int] = []
        self._seen: _Ran = {}

    def freeze(self) -> None:
        """Return when no process of a command runs. Kills processes that can't be held still."""
        self.frozen = True
        until = time.monotonic() + _PATIENCE_S
        while True:
            patient = time.monotonic() < until
            if self._hold_commands(patient=patient) and self._hold_supervisors():
                self._seen = _look(self._commands())
                return
            self._release_supervisors()
            time.sleep(_PAUSE_S)

    def thaw(self) -> bool:
        """Let all continue. Return whether they stood still until now; kill processes that did not."""
        now = _look(self._commands())
        if self._cgroup is not None and self._seen:
            still = self._cgroup.is_frozen() and now.keys() <= self._seen.keys()
            self._cgroup.thaw()
        else:
            moved = [one for one, ran in now.items() if self._seen.get(one) != ran and ran[0] not in _ENDED]
            for one in moved:
                if one not in self._seen or self._seen[one][0] not in _WAITING:
                    kill(one)
            still = not moved
        self._release_supervisors()
        for one in self._stopped:
            _signal(one, signal.SIGCONT)
        self._stopped, self._seen, self.frozen = [], {}, False
        return still

    def close(self) -> None:
        """Let all continue, so that they can be ended, and remove the cgroup if it is empty."""
        if self.frozen:
            self.thaw()
        for one in (self._cgroup, self._abandoned):
            if one is not None:
                one.remove()

    def _hold_commands(self, *, patient: bool) -> bool:
        """Try to hold the commands. Return whether they all stand still."""
        commands = self._commands()
        if not commands:
            return True
        if self._cgroup is None and self._abandoned is None and not self._stopped:
            self._cgroup = _make_cgroup()
        if self._cgroup is not None:
            if self._cgroup.freeze(commands):
                return set(self._commands()) <= set(commands)
            if patient:
                return False
            self._cgroup.thaw()
            self._abandoned, self._cgroup = self._cgroup, None
        before = _look(commands)
        for one, (state, _) in before.items():
            if state not in _STILL:
                _signal(one, signal.SIGSTOP)
                if one not in self._stopped:
                    self._stopped.append(one)
        time.sleep(_PAUSE_S)
        after = _look(self._commands())
        restless = [one for one, ran in after.items() if not _is_still(before.get(one), ran)]
        if not patient:
            for one in restless:
                kill(one)
        return not restless

    def _hold_supervisors(self) -> bool:
        """Stop the processes that could start commands. Return whether the commands still stand still."""
        commands = self._commands()
        seen = _look(commands)
        self._supervisors = [one for one in process_tree(os.getpid()) if one not in commands]
        for one in self._supervisors:
            _signal(one, signal.SIGSTOP)
        while any(state not in _STILL for state, _ in _look(self._supervisors).values()):
            time.sleep(_PAUSE_S)
        now = self._commands()
        if self._cgroup is None or not commands:
            return _look(now) == seen
        return set(now) <= set(commands) and self._cgroup.is_frozen()

    def _release_supervisors(self) -> None:
        for one in self._supervisors:
            _signal(one, signal.SIGCONT)
        self._supervisors = []

    def _commands(self) -> list[int]:
        """Return the processes of commands, which have a process namespace of their own."""
        return [one for one in process_tree(os.getpid()) if _is_nested(one)]


class _Cgroup:
    """Cgroup whose processes can be frozen at once."""

    def __init__(self, place: str, words: tuple[str, str, str]) -> None:
        self._place = place
        self._file, self._freeze, self._thaw = words

    def freeze(self, processes: Iterable[int]) -> bool:
        """Move the processes here and begin to freeze them. Return whether all are here and frozen."""
        with suppress(OSError):
            os.mkdir(self._place)
        inside = set(read(f"{self._place}/cgroup.procs").split())
        with suppress(OSError):
            for one in processes:
                if str(one) not in inside:
                    write(f"{self._place}/cgroup.procs", str(one))
            write(f"{self._place}/{self._file}", self._freeze)
        inside = set(read(f"{self._place}/cgroup.procs").split())
        return self.is_frozen() and all(str(one) in inside or _has_ended(one) for one in processes)

    def is_frozen(self) -> bool:
        """Return whether every process here is frozen."""
        if self._file == _V2[0]:
            return "frozen 1" in read(f"{self._place}/cgroup.events")
        return read(f"{self._place}/{self._file}").strip() == self._freeze

    def thaw(self) -> None:
        """Let the processes continue."""
        with suppress(OSError):
            write(f"{self._place}/{self._file}", self._thaw)

    def remove(self) -> None:
        """Remove the cgroup, if no process is left in it."""
        with suppress(OSError):
            os.rmdir(self._place)


def _make_cgroup() -> _Cgroup | None:
    """Make a cgroup below that of this process. None where that is not permitted."""
    for above, is_v1 in own_cgroups("freezer"):
        control = _V1 if is_v1 else _V2
        with suppress(OSError):
            made = make_cgroup(above)
            if os.access(f"{made}/{control[0]}", os.W_OK) and os.access(f"{above}/cgroup.procs", os.W_OK):
                return _Cgroup(made, control)
            os.rmdir(made)
    return None


def _is_nested(process: int) -> bool:
    found = _NAMES.search(read_proc(f"{process}/status"))
    return found is not None and len(found[1].split()) > 1


def _look(processes: Iterable[int]) -> _Ran:
    """Return the state of each process and how often it ran, without those that have ended."""
    found: _Ran = {}
    for process in processes:
        with suppress(OSError):
            threads = sorted(os.listdir(f"/proc/{process}/task"))
            texts = [read_proc(f"{process}/task/{one}/status") for one in threads]
            states = b"".join(text.partition(b"\nState:\t")[2][:1] for text in texts)
            restless = next((state for state in states if state not in _STILL), None)
            state = states[:1] if restless is None else bytes([restless])
            found[process] = state, tuple(b"+".join(_SWITCHES.findall(text)) for text in texts)
    return found


def _is_still(before: tuple[bytes, tuple[bytes, ...]] | None, now: tuple[bytes, tuple[bytes, ...]]) -> bool:
    return before == now and now[0] in _STILL + _WAITING


def _has_ended(process: int) -> bool:
    state = read_proc(f"{process}/stat").rpartition(b")")[2].split()[:1]
    return not state or state[0] in _ENDED


def _signal(process: int, number: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(process, number)
