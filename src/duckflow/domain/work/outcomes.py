"""Outcomes of requests and their statistics: overall, by kind of task, by model, and the targets (J7)."""

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
"""`accepted`: the user accepted an unsatisfactory result. `not_judged`: no judgement was possible."""

ENDED: tuple[RequestOutcome, ...] = ("done", "accepted", "not_judged", "stopped")
"""Outcomes that end a request; after all others it continues."""

PAUSES: tuple[RequestOutcome, ...] = (
    "pending_user",
    "consultation",
    "not_satisfied",
    "provider_error",
    "interrupted",
)
"""Outcomes after which the user had to say more. Giving permission does not count."""


class RequestStats(Frozen):
    """Statistics of a group of requests; None where nothing is known."""

    by: Literal["all", "profile", "model", "target"] = "all"
    name: str = ""
    requests: int = 0
    done: float | None = None
    """Share that ended as done."""
    done_at_once: float | None = None
    """Share that ended as done without another message from the user."""
    accepted: float | None = None
    """Share that the user accepted although unsatisfactory."""
    not_judged: float | None = None
    """Share that could not be judged."""
    attempts: float | None = None
    """Mean attempts of the judged requests."""
    satisfaction: float | None = None
    """Mean score at the last evaluation."""
    rating: float | None = None
    """Mean rating by users, out of 10."""


TARGETS = RequestStats(by="target", done_at_once=0.95, attempts=1.6, rating=8.5)
