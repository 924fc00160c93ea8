"""Many requests in many repositories, durable, by as many workers as there are (M8).

For a page that shows the runs: `in_use()` says whether there are any without importing a database, and
`fleet.fleet.open_fleet()` gives a `Fleet`, whose `runs.listed()`, `runs.find(id)`, `runs.events(id, after)`
and `state(run)` read, and whose `answer(id, text, run.question)` answers exactly what was shown.
"""

import os

from duckflow.config.places import state_dir

VARIABLE = "DUCKFLOW_DATABASE"
FILE = "fleet.db"


def in_use() -> bool:
    """Whether there is a fleet to show: a database is named, or there is one at home."""
    return bool(os.environ.get(VARIABLE)) or (state_dir() / FILE).exists()
