"""Events as text, JSON or Markdown: printed while a task runs without a terminal, or to read later."""

import json
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from duckflow.domain.events import (
    ConsultationRequested,
    ErrorReported,
    SessionStarted,
    StoredEvent,
)
from duckflow.domain.live_updates import LiveUpdate, Waiting
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import echo, harmless, on_one_line
from duckflow.ui.views.events import Describer, EventDescription, consultation_text, error_text, waiting_line

_CHOSEN_BY_USER = "llm.chosen_by_setting"
"""Reason for a model if the user named it. Its name is then not repeated."""


class PlainText:
    """Prints replies on standard output, and everything else on standard error (M3).

    `flags` are those to repeat in a command that continues, because the session does not store them.
    """

    def __init__(self, flags: Sequence[str]) -> None:
        self._flags = flags
        self._describe = Describer()

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        if isinstance(what, Waiting):
            echo(waiting_line(what), sys.stderr)
        if not isinstance(what, StoredEvent):
            return
        event = what.event
        if isinstance(event, SessionStarted):
            self._describe = Describer(shlex.join([event.session_id, *self._flags]))
        described = self._describe(event)
        named = isinstance(event, SessionStarted) and event.model_reason == _CHOSEN_BY_USER
        if described is None or named or described.kind in ("message", "answer"):
            return  # the user wrote these
        if described.kind == "reply":
            echo(described.text.rstrip())
        else:
            echo(described.plain, sys.stderr)


def print_json(what: StoredEvent | LiveUpdate) -> None:
    """Print an event as one line of JSON."""
    if isinstance(what, StoredEvent):
        utf = (sys.stdout.encoding or "utf").casefold().startswith("utf")
        echo(json.dumps(event_object(what), ensure_ascii=not utf))


def event_object(recorded: StoredEvent) -> dict[str, Any]:
    """Return an event as data for programs (N), with a message for people if it has one."""
    body = recorded.event.model_dump(mode="json", exclude={"exchange"})
    if isinstance(recorded.event, ErrorReported):
        body["message"] = error_text(recorded.event)
    elif isinstance(recorded.event, ConsultationRequested):
        body["message"] = consultation_text(recorded.event.consultation)
    return {"seq": recorded.seq, "at": recorded.at.isoformat(), **body}


def print_transcript(events: Sequence[StoredEvent]) -> None:
    """Print all events of a session as text."""
    for described in _described(events):
        echo(_plain(described))


def as_markdown(title: str, events: Sequence[StoredEvent]) -> str:
    """Return the session as a Markdown document."""
    parts = [f"# {on_one_line(title) or text('session.untitled')}"]
    parts += [part for described in _described(events) for part in _markdown(described)]
    return "\n\n".join(parts) + "\n"


def as_json(title: str, events: Sequence[StoredEvent]) -> str:
    """Return all events in one JSON object."""
    body = [{"seq": one.seq, "at": one.at.isoformat(), **one.event.model_dump(mode="json")} for one in events]
    return json.dumps({"title": title, "events": body}, ensure_ascii=False, indent=2) + "\n"


def fenced(content: str, language: str) -> str:
    """Return the content in a Markdown code block that ends only after the content."""
    fence = "```"
    while fence in content:
        fence += "`"
    return f"{fence}{language}\n{harmless(content).strip()}\n{fence}"


def _described(events: Sequence[StoredEvent]) -> Iterator[EventDescription]:
    describe = Describer()
    for recorded in events:
        if (described := describe(recorded.event)) is not None:
            yield described


def _plain(described: EventDescription) -> str:
    message = described.kind == "message"
    return f"\n{text('chat.prompt')}{described.text}\n" if message else described.plain


def _markdown(described: EventDescription) -> Iterator[str]:
    said = harmless(described.text).strip("\n")
    match described.kind:
        case "session":
            yield f"*{said}*"
        case "message":
            yield "\n".join(f"> {line}".rstrip() for line in said.split("\n"))
        case "reply":
            yield said.strip()
        case "question":
            yield fenced(said, "text")
        case _:
            yield f"- {said}".replace("\n", "\n  ")
    if described.difference:
        yield fenced(described.difference, "diff")
    if described.output:
        yield fenced("\n".join(described.output), "text")
    if described.notes:
        yield "\n".join(f"  {note}" for note in described.notes)
