"""Statistics of request outcomes, from the rows of the `outcomes` table (J7)."""

from collections.abc import Sequence

from duckflow.domain.work.outcomes import RequestStats
from duckflow.store.database.database import Database

# Columns in the order of the fields of RequestStats.
_FIGURES = """
SELECT '{by}', {name}, count(*), avg(outcome = 'done'), avg(outcome = 'done' AND pauses = 0),
    avg(outcome = 'accepted'), avg(outcome = 'not_judged'),
    avg(nullif(attempts, 0)), avg(satisfaction), avg(rating)
FROM outcomes GROUP BY 2 ORDER BY 3 DESC, 2
"""

_NAMES = {"all": "''", "profile": "coalesce(profile, '')", "model": "model"}
_LOOPS = """
SELECT loops FROM outcomes WHERE outcome = 'done' AND profile IS ? AND loops > 0 ORDER BY rowid DESC LIMIT 50
"""


def request_stats(database: Database) -> Sequence[RequestStats]:
    """Return statistics for all requests, then by profile and by model, most frequent first."""
    found: list[RequestStats] = []
    with database.read() as connection:
        for by, name in _NAMES.items():
            rows = connection.execute(_FIGURES.format(by=by, name=name))
            named = (dict(zip(RequestStats.model_fields, row, strict=True)) for row in rows)
            found += map(RequestStats.model_validate, named)
    return found


def loops_used(database: Database, profile: str | None) -> tuple[int, ...]:
    """Return the number of loops of each latest finished request of this kind, newest first (I11)."""
    return tuple(loops for (loops,) in database.query(_LOOPS, (profile,)))
