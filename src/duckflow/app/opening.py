"""Everything that is chosen before a session is opened."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from duckflow.config.loading import LoadedSettings
from duckflow.llm.local.relay import Relay
from duckflow.loops.session import Pause, go_straight_on
from duckflow.store.event_log import SqliteEventLog
from duckflow.tools.files.unsaved import Unsaved


class Opening(NamedTuple):
    """A session to open: its folder, its settings, and what the interface provides."""

    loaded: LoadedSettings
    folder: Path
    session_id: str | None = None
    """Id of an earlier session; None opens a new one."""
    attended: bool = False
    """True if a person answers questions, also about the project's own tests."""
    relay: Relay | None = None
    keeps_mode: bool = False
    """True if an earlier session keeps its mode instead of that in the settings."""
    model_first: bool = False
    """True to refuse to open if no model answers."""
    unsaved: Unsaved | None = None
    """Reads files as they are in an editor."""
    verify: str | None = None
    reads_only: bool = False
    """True for a session that stays in mode plan, so that it can be open beside another one in its folder."""
    log: SqliteEventLog | None = None
    """Log of a fleet run, on which several machines may work."""
    pause: Pause = go_straight_on
    asked: Mapping[str, int] = MappingProxyType({})
    """Number of answers that models gave in earlier processes, by type of output."""
