"""Landlock's rules for the commands of one workspace, kept as long as they say what they would say now.

A rule is for a file or folder itself, not for its name, and there are hundreds where something is closed in a
large folder. They are made again when what is closed is another, or a folder whose entries they name changed.
"""

import os
import time

from duckflow.safety.sandbox.child import landlock
from duckflow.safety.sandbox.view.confinement import MadeRules, readable, writable
from duckflow.safety.sandbox.view.visibility import Stamp, Visibility, stamp_of

_SECOND = 1_000_000_000
_TICK_NS = _SECOND // 20
_COARSE_NS = 3 * _SECOND
"""How long another change of a folder may get the same time: on a usual disk, and where times are seconds."""


class LandlockRules:
    """The rules for one session. Blocking; one thread at a time."""

    def __init__(self) -> None:
        self._made: MadeRules | None = None
        self._reach: Visibility | None = None
        self._listed: dict[str, Stamp] = {}
        self._single: dict[str, tuple[int, ...]] = {}

    def find(self, reach: Visibility) -> MadeRules:
        """The rules; their descriptor is the caller's to close."""
        if self._made is None or reach != self._reach or not self._hold():
            self.close()
            listed: dict[str, Stamp] = {}
            wanted = tuple(readable(reach, listed)), tuple(writable(reach, listed))
            single = (path for paths in wanted for path in paths if os.path.dirname(path) not in listed)
            self._listed, self._single = listed, {path: _identity(path) for path in single}
            now = time.time_ns()
            fresh = any(stamp and _is_fresh(stamp[2], now) for stamp in listed.values())
            self._reach = None if fresh else reach
            self._made = MadeRules(landlock.make_rules(*wanted), wanted[1])
        return self._made._replace(descriptor=os.dup(self._made.descriptor))

    def _hold(self) -> bool:
        """Whether they would be the same if they were made now."""
        same = all(stamp_of(path) == stamp for path, stamp in self._listed.items())
        return same and all(_identity(path) == one for path, one in self._single.items())

    def close(self) -> None:
        """Let go of them."""
        if self._made is not None:
            os.close(self._made.descriptor)
        self._made = None


def _identity(path: str) -> tuple[int, ...]:
    return (stamp_of(path) or ())[:2]


def _is_fresh(changed_ns: int, now: int) -> bool:
    return now - changed_ns < (_TICK_NS if changed_ns % _SECOND else _COARSE_NS)
