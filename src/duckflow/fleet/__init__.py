"""The fleet: a stored queue of requests for many repositories, with any number of workers (M8)."""

import os
from typing import Literal

from duckflow.config.places import state_dir

VARIABLE = "DUCKFLOW_DATABASE"
FILE = "fleet.db"
RunState = Literal["queued", "working", "waiting", "done", "failed", "cancelled"]


def in_use() -> bool:
    """Return True if a fleet database is configured or exists; imports nothing of the fleet."""
    return bool(os.environ.get(VARIABLE)) or (state_dir() / FILE).exists()
