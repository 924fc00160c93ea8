"""One task without a terminal: events as text or as JSON lines. Never waits for input (M3)."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any

from duckflow.domain.events import ConsultationRequested, ErrorReported, SessionStarted, StoredEvent
from duckflow.domain.live_updates import LiveUpdate, Waiting
from duckflow.ui.output.escaping import echo
from duckflow.ui.views.events import Describer, EventDescription, consultation_text, error_text, waiting_line

_CHOSEN_BY_USER = "llm.chosen_by_setting"
"""A user who named the model need not be told which it is."""


def print_json(what: StoredEvent | LiveUpdate) -> None:
    """Print an event as one JSON object on a line; live updates are not events."""
    if isinstance(what, StoredEvent):
        utf = (sys.stdout.encoding or "utf").casefold().startswith("utf")
        echo(json.dumps(event_object(what), ensure_ascii=not utf))


def event_object(recorded: StoredEvent) -> dict[str, Any]:
    """An event as programs get it (N), with what a person would read where it needs words."""
    body = recorded.event.model_dump(mode="json", exclude={"exchange"})
    if isinstance(recorded.event, ErrorReported):
        body["message"] = error_text(recorded.event)
    elif isinstance(recorded.event, ConsultationRequested):
        body["message"] = consultation_text(recorded.event.consultation)
    return {"seq": recorded.seq, "at": recorded.at.isoformat(), **body}


class PlainText:
    """Replies go to standard output, everything about the work to standard error.

    `flags` is what a command that goes on must say again, because the session does not keep it.
    """

    def __init__(self, flags: Sequence[str]) -> None:
        self._flags = flags
        self._describe = Describer()

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        """Print what a person who reads along wants to know."""
        if isinstance(what, Waiting):
            echo(waiting_line(what), sys.stderr)
        elif isinstance(what, StoredEvent):
            if isinstance(what.event, SessionStarted):
                self._describe = Describer(shlex.join([what.event.session_id, *self._flags]))
            described = self._describe(what.event)
            named = isinstance(what.event, SessionStarted) and what.event.model_reason == _CHOSEN_BY_USER
            if described is not None and not named:
                self._event(described)

    def _event(self, described: EventDescription) -> None:
        match described.kind:
            case "reply":
                echo(described.text.rstrip())
            case "message" | "answer":
                pass  # whoever started the run said it
            case _:
                echo(described.plain, sys.stderr)
