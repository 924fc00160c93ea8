"""What earlier sessions in this folder did to files, so that a new one can take it back (G8)."""

from collections.abc import Iterable, Sequence
from itertools import islice

from duckflow.domain.errors import UserError
from duckflow.domain.files.changes import ChangeSet
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, new_state
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.sessions import Sessions

_LOOKED_AT = 20
"""Sessions that are looked through, newest first."""


class EarlierChanges:
    """Finds the newest session before this one that still has something to take back."""

    def __init__(self, log: SqliteEventLog, workspace: str) -> None:
        self._log = log
        self._workspace = workspace

    def find(self, state: AgentState) -> Sequence[ChangeSet]:
        """All change sets of that session, with ids that say whose they are; none if there is no such one."""
        taken = set(_taken_back(state.change_sets))
        listed = Sessions(self._log.database).listed(self._workspace)
        others = (one.id for one in listed if one.id != state.session_id)
        for session_id in islice(others, _LOOKED_AT):
            sets = self._sets_of(session_id)
            named = [_named(session_id, one, taken) for one in sets]
            if undoable(named):
                return named
            taken |= set(_taken_back(sets))
        return ()

    def _sets_of(self, session_id: str) -> Sequence[ChangeSet]:
        state = new_state(session_id)
        try:
            for recorded in self._log.load(session_id):
                state = apply(state, recorded)
        except UserError:
            return ()  # a session that this version can't read has nothing to offer
        return state.change_sets


def undoable(sets: Iterable[ChangeSet]) -> list[ChangeSet]:
    """Those that changed files and were not taken back yet."""
    return [one for one in sets if one.changes and not one.undone and not one.by_undo]


def _taken_back(sets: Iterable[ChangeSet]) -> Iterable[str]:
    """What undos took back that are still in force."""
    return (name for one in sets if one.operation == "undo" and not one.undone for name in one.takes_back)


def _named(session_id: str, one: ChangeSet, taken: set[str]) -> ChangeSet:
    name = f"{session_id}/{one.action_id}"
    return replace(
        one,
        action_id=name,
        request_id=f"{session_id}/{one.request_id}",
        undone=one.undone or name in taken,
    )
