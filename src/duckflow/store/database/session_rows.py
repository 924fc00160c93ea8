"""One line about each session, kept up to date with every event that is stored."""

import sqlite3
from collections.abc import Iterable, Sequence

from duckflow.domain.events import (
    Event,
    RequestFinished,
    RequestRated,
    SessionStarted,
    SessionTitled,
    UserMessage,
)
from duckflow.domain.text import one_line
from duckflow.store.database.outcome_rows import Told, note_outcomes

TITLE_LENGTH = 60

_NOTE = """
INSERT INTO sessions (id, workspace, title, created, updated, events, outcome, latest, model)
VALUES (:id, :workspace, :title, :first, :last, :count, :outcome, 0, :model)
ON CONFLICT (id) DO UPDATE SET
    workspace = CASE excluded.workspace WHEN '' THEN workspace ELSE excluded.workspace END,
    title = CASE title WHEN '' THEN excluded.title ELSE title END,
    updated = excluded.updated,
    events = events + excluded.events,
    outcome = coalesce(excluded.outcome, outcome),
    model = CASE excluded.model WHEN '' THEN model ELSE excluded.model END
"""
_TITLE = "UPDATE sessions SET title = ? WHERE id = ?"
# A counter, not the clock, says which session was the last: clocks are set back.
_LATEST = "UPDATE sessions SET latest = (SELECT max(latest) + 1 FROM sessions) WHERE id = ?"


def note(
    connection: sqlite3.Connection, session_id: str, times: Sequence[str], events: Iterable[Event]
) -> None:
    """Add events, stored at `times`, to the line of their session, and how requests ended to theirs."""
    line: dict[str, str | int | None] = {
        "id": session_id,
        "workspace": "",
        "title": "",
        "first": times[0],
        "last": times[-1],
        "count": len(times),
        "outcome": None,
        "model": "",
    }
    told: list[Told] = []
    given = ""
    for event in events:
        match event:
            case SessionStarted():
                line["workspace"] = event.workspace
                line["model"] = event.model
            case UserMessage():
                line["title"] = line["title"] or one_line(event.text, TITLE_LENGTH)
            case RequestFinished():
                line["outcome"] = event.outcome
                told.append((event, str(line["model"]) or None))
            case SessionTitled():
                given = event.title
            case RequestRated():
                told.append((event, None))
            case _:
                pass
    connection.execute(_NOTE, line)
    if given:
        connection.execute(_TITLE, (given, session_id))
    connection.execute(_LATEST, (session_id,))
    note_outcomes(connection, session_id, told)
