"""One task without a terminal: events as text or as JSON lines. Never waits for input (SPEC M3)."""

import json
import shlex
import sys
from collections.abc import Sequence
from typing import Any, TextIO

from duckflow.domain.errors import UserError
from duckflow.domain.events import ConsultationRequested, ErrorReported, Recorded, SessionStarted
from duckflow.domain.glimpses import Glimpse, Waiting
from duckflow.ui.output.escaping import printable
from duckflow.ui.views.events import Describer, EventDescription, consultation_text, error_text, waiting_line

_CHOSEN_BY_USER = "llm.chosen_by_setting"
"""A user who named the model need not be told which it is."""


class JsonLines:
    """Prints every event as one JSON object a line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout
        encoding = str(getattr(self._out, "encoding", None) or "utf-8")
        self._ascii = not encoding.casefold().startswith("utf")

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Print an event; glimpses are not events."""
        if isinstance(what, Recorded):
            _put(self._out, json.dumps(event_object(what), ensure_ascii=self._ascii))


def event_object(recorded: Recorded) -> dict[str, Any]:
    """An event as programs get it (SPEC N), with what a person would read where it needs words."""
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

    def __init__(
        self, flags: Sequence[str] = (), out: TextIO | None = None, log: TextIO | None = None
    ) -> None:
        self._flags = flags
        self._describe = Describer()
        self._out = out or sys.stdout
        self._log = log or sys.stderr

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Print what a person who reads along wants to know."""
        if isinstance(what, Waiting):
            _put(self._log, waiting_line(what))
        elif isinstance(what, Recorded):
            if isinstance(what.event, SessionStarted):
                self._describe = Describer(shlex.join([what.event.session_id, *self._flags]))
            described = self._describe(what.event)
            named = isinstance(what.event, SessionStarted) and what.event.model_reason == _CHOSEN_BY_USER
            if described is not None and not named:
                self._event(described)

    def _event(self, described: EventDescription) -> None:
        match described.kind:
            case "reply":
                _put(self._out, described.text.rstrip())
            case "message" | "answer":
                pass  # whoever started the run said it
            case _:
                output = [f"  {line}" for line in described.output]
                parts = (described.difference.rstrip("\n"), described.text, *output)
                _put(self._log, "\n".join(part for part in parts if part))


def _put(out: TextIO, line: str) -> None:
    """Write a line at once; a disk that is full under a redirected output is for the user to fix."""
    try:
        out.write(printable(line, out) + "\n")
        out.flush()
    except BrokenPipeError:
        raise  # whoever read has gone: a usual end, not a fault
    except OSError as exc:
        raise UserError("run.output_failed", reason=exc.strerror or str(exc)) from exc
