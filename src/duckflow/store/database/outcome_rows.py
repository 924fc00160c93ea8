"""How requests ended: a row for each, kept up to date with every event that is stored (SPEC J7)."""

import sqlite3
from collections.abc import Iterable

from duckflow.domain.events import RequestFinished, RequestRated
from duckflow.domain.work.outcomes import PAUSES

_FINISHED = """
INSERT INTO outcomes (session_id, request_id, model, profile, outcome, pauses, loops, attempts, satisfaction)
VALUES (
    :session, :request, coalesce(:model, (SELECT model FROM sessions WHERE id = :session)),
    :profile, :outcome, :pauses, :loops, :attempts, :satisfaction
)
ON CONFLICT (session_id, request_id) DO UPDATE SET
    model = excluded.model,
    profile = coalesce(excluded.profile, profile),
    outcome = excluded.outcome,
    pauses = pauses + excluded.pauses,
    loops = max(loops, excluded.loops),
    attempts = max(attempts, excluded.attempts),
    satisfaction = coalesce(excluded.satisfaction, satisfaction)
"""
_RATED = "UPDATE outcomes SET rating = ? WHERE session_id = ? AND request_id = ?"
Told = tuple[RequestFinished | RequestRated, str | None]
"""An event, and the model that was at work, where that is known."""


def note_outcomes(connection: sqlite3.Connection, session_id: str, told: Iterable[Told]) -> None:
    """Write down how requests ended or were liked; the last word on a request counts."""
    for event, model in told:
        if isinstance(event, RequestRated):
            connection.execute(_RATED, (event.rating, session_id, event.request_id))
        else:
            connection.execute(_FINISHED, _row(session_id, event, model))


def _row(session_id: str, event: RequestFinished, model: str | None) -> dict[str, object]:
    return {
        "session": session_id,
        "request": event.request_id,
        "model": model,
        "profile": event.profile,
        "outcome": event.outcome,
        "pauses": event.outcome in PAUSES,
        "loops": event.loops,
        "attempts": event.attempts,
        "satisfaction": event.satisfaction,
    }
