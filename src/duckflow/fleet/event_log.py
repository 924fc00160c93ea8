"""The event log of a run: in the fleet's database first, so that every machine can go on; then at home."""

from collections.abc import Sequence
from pathlib import Path

from duckflow.domain.events import Event, Recorded
from duckflow.fleet.runs import FleetRun, Runs
from duckflow.store.event_log import SqliteEventLog


class SharedLog(SqliteEventLog):
    """What begins is known to all before it begins: an action that is found without its end is asked about.

    The log at home has the same, for `duckflow sessions` and the audit; it catches up where it is behind.
    """

    def __init__(self, path: Path, shared: Runs, run: FleetRun) -> None:
        super().__init__(path)
        self._shared = shared
        self._run = run

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[Recorded]:
        """Store all of them for everyone, or none."""
        if events:
            self._shared.append(self._run, self._last.get(session_id, 0) + 1, events)
        return super().append(session_id, events)

    def load(self, session_id: str) -> Sequence[Recorded]:
        """Every event of the run, oldest first, wherever it was worked on."""
        shared = self._shared.events(session_id)
        known = len(super().load(session_id))
        super().append(session_id, [one.event for one in shared[known:]])
        return shared
