"""Everything that is chosen when a session is opened."""

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
    """An earlier session; a new one if left out."""
    attended: bool = False
    """A person answers questions, and may be asked about the project's own tests, too."""
    relay: Relay | None = None
    keeps_mode: bool = False
    """An earlier session keeps its mode, whatever the settings say."""
    model_first: bool = False
    """Refuse to open if no model answers."""
    unsaved: Unsaved | None = None
    """Reads files as they are in an editor."""
    verify: str | None = None
    log: SqliteEventLog | None = None
    """The log of a run of the fleet, which several machines may work on."""
    pause: Pause = go_straight_on
    asked: Mapping[str, int] = MappingProxyType({})
    """Number of answers that models gave so far, by kind."""
