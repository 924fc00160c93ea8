"""How requests end, and that in numbers: all, by kind of task, by model, and what is aimed at (SPEC J7)."""

from typing import Literal

from duckflow.domain.frozen import Frozen

RequestOutcome = Literal[
    "done",
    "accepted",
    "not_judged",
    "pending_user",
    "deferred",
    "awaiting_approval",
    "consultation",
    "not_satisfied",
    "stopped",
    "provider_error",
    "interrupted",
]
"""`accepted`: the user took it as it is, though it was not satisfied. `not_judged`: nobody could tell."""

ENDED: tuple[RequestOutcome, ...] = ("done", "accepted", "not_judged", "stopped")
"""Outcomes after which a request is over; after all others it goes on."""

PAUSES: tuple[RequestOutcome, ...] = (
    "pending_user",
    "consultation",
    "not_satisfied",
    "provider_error",
    "interrupted",
)
"""Outcomes after which the user had to say more. A permission is no more than a yes."""


class RequestStats(Frozen):
    """What became of a group of requests; None if nothing is known."""

    by: Literal["all", "profile", "model", "target"] = "all"
    name: str = ""
    requests: int = 0
    done: float | None = None
    """The share that ended done."""
    done_at_once: float | None = None
    """The share that ended done without a further word of the user's."""
    accepted: float | None = None
    """The share that the user took as it was, though it was not satisfied."""
    not_judged: float | None = None
    """The share that nobody could judge."""
    attempts: float | None = None
    """Attempts a request took, of those that were judged."""
    satisfaction: float | None = None
    """How far they were met at the last look."""
    rating: float | None = None
    """How users liked them, of 10."""


TARGETS = RequestStats(by="target", done_at_once=0.95, attempts=1.6, rating=8.5)
"""What is aimed at."""
