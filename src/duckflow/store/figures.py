"""What became of requests, in numbers, from the rows that `outcomes` keeps (SPEC J7)."""

from collections.abc import Sequence
from typing import Literal

from duckflow.domain.outcomes import Figures
from duckflow.store.database import Database

_FIGURES = """
SELECT {name}, count(*), avg(outcome = 'done'), avg(outcome = 'done' AND pauses = 0),
    avg(nullif(attempts, 0)), avg(satisfaction), avg(rating)
FROM outcomes GROUP BY 1 ORDER BY 2 DESC, 1
"""

Group = Literal["all", "profile", "model"]
_NAMES: dict[Group, str] = {"all": "''", "profile": "coalesce(profile, '')", "model": "model"}


class Outcomes:
    """The outcomes of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def figures(self) -> Sequence[Figures]:
        """For all requests, then by profile and by model, the most frequent first."""
        found: list[Figures] = []
        with self._database.read() as connection:
            for by, name in _NAMES.items():
                rows = connection.execute(_FIGURES.format(name=name)).fetchall()
                found += [_figures(by, row) for row in rows]
        return found


def _figures(
    by: Group, row: tuple[str, int, float, float, float | None, float | None, float | None]
) -> Figures:
    name, requests, done, at_once, attempts, satisfaction, rating = row
    return Figures(
        by=by,
        name=name,
        requests=requests,
        done=done,
        done_at_once=at_once,
        attempts=attempts,
        satisfaction=satisfaction,
        rating=rating,
    )
