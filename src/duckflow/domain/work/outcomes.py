"""Outcomes of requests, and statistics of them: overall, by kind of task, by model, and targets (J7)."""

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
"""`accepted`: the user accepted an unsatisfactory result. `not_judged`: no verdict was possible."""

ENDED: tuple[RequestOutcome, ...] = ("done", "accepted", "not_judged", "stopped")
"""Outcomes that end a request. After all other outcomes, it can continue."""

PAUSES: tuple[RequestOutcome, ...] = (
    "pending_user",
    "consultation",
    "not_satisfied",
    "provider_error",
    "interrupted",
)
"""Outcomes after which the user had to write more. Giving an approval does not count."""


class RequestStats(Frozen):
    """Statistics of a group of requests. A value is None if it is unknown."""

    by: Literal["all", "profile", "model", "target"] = "all"
    name: str = ""
    requests: int = 0
    done: float | None = None
    """Share that ended as done."""
    done_at_once: float | None = None
    """Share that ended as done without another message from the user."""
    accepted: float | None = None
    """Share that the user accepted although it was unsatisfactory."""
    not_judged: float | None = None
    """Share that could not be judged."""
    attempts: float | None = None
    """Mean number of attempts, of requests that were judged."""
    satisfaction: float | None = None
    """Mean score at the last evaluation."""
    rating: float | None = None
    """Mean rating by users, out of 10."""


TARGETS = RequestStats(by="target", done_at_once=0.95, attempts=1.6, rating=8.5)
