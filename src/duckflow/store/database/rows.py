"""Rows of the database: events as text, and facts about each session and request (J7)."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache

from pydantic import TypeAdapter, ValidationError
from pydantic_core import PydanticSerializationError

from duckflow.domain.events import (
    Event,
    RequestFinished,
    RequestRated,
    SessionStarted,
    SessionTitled,
    UserMessage,
)
from duckflow.domain.text import one_line
from duckflow.domain.work.outcomes import PAUSES

TITLE_LENGTH = 60

# A counter, not the time, tells which session is the latest, because clocks may be set back.
_ADDED = """
INSERT INTO sessions (id, workspace, title, created, updated, events, latest)
VALUES (?, '', '', ?, ?, ?, (SELECT coalesce(max(latest), 0) + 1 FROM sessions))
ON CONFLICT (id) DO UPDATE SET
    updated = excluded.updated, events = events + excluded.events, latest = excluded.latest
"""
_STARTED = "UPDATE sessions SET workspace = ?, model = ? WHERE id = ?"
_FIRST_WORDS = "UPDATE sessions SET title = ? WHERE id = ? AND title = ''"
_TITLED = "UPDATE sessions SET title = ? WHERE id = ?"
_ENDED = "UPDATE sessions SET outcome = ? WHERE id = ?"
_FINISHED = """
INSERT INTO outcomes (session_id, request_id, model, profile, outcome, pauses, loops, attempts, satisfaction)
VALUES (
    :session_id, :request_id, (SELECT model FROM sessions WHERE id = :session_id),
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


@cache
def _adapter() -> TypeAdapter[Event]:
    # Built on first use, because it costs more than importing this module.
    return TypeAdapter(Event)


def encode(event: Event) -> str:
    """Return the event as JSON. Invalid Unicode (lone surrogates) becomes question marks."""
    try:
        return event.model_dump_json()
    except PydanticSerializationError:
        body = json.dumps(event.model_dump(), ensure_ascii=False)
        return body.encode("utf-8", "replace").decode()


def decode(body: str) -> Event:
    """Return the event of a row. Raises pydantic's ValidationError if this version does not know it."""
    return _adapter().validate_json(body)


def known_events(bodies: Iterable[str]) -> Iterator[Event]:
    """Yield the events of these rows, skipping those that this version does not know."""
    for body in bodies:
        with suppress(ValidationError):
            yield decode(body)


def note(
    connection: sqlite3.Connection, session_id: str, times: Sequence[str], events: Iterable[Event]
) -> None:
    """Update the row of a session for events stored at `times`, and the rows of its requests."""
    connection.execute(_ADDED, (session_id, times[0], times[-1], len(times)))
    for event in events:
        match event:
            case SessionStarted():
                connection.execute(_STARTED, (event.workspace, event.model, session_id))
            case UserMessage():
                connection.execute(_FIRST_WORDS, (one_line(event.text, TITLE_LENGTH), session_id))
            case SessionTitled():
                connection.execute(_TITLED, (event.title, session_id))
            case RequestFinished():
                connection.execute(_ENDED, (event.outcome, session_id))
                paused = event.outcome in PAUSES
                row = {**event.model_dump(), "session_id": session_id, "pauses": paused}
                connection.execute(_FINISHED, row)
            case RequestRated():
                connection.execute(_RATED, (event.rating, session_id, event.request_id))
            case _:
                pass
