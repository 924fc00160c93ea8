"""Many requests in many repositories, durable, with any number of workers (M8)."""

import os

from duckflow.config.places import state_dir

VARIABLE = "DUCKFLOW_DATABASE"
FILE = "fleet.db"


def in_use() -> bool:
    """Return True if a fleet database is named or exists; imports nothing of the fleet."""
    return bool(os.environ.get(VARIABLE)) or (state_dir() / FILE).exists()
