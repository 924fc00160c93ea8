"""One task without a terminal: events as text or as JSON lines. Never waits for input (SPEC M3)."""

import json
import sys
from typing import TextIO

from duckflow.domain.events import (
    ActionFinished,
    ApprovalRequested,
    ConsultationRequested,
    ErrorReported,
    Glimpse,
    PlanChanged,
    Recorded,
    Reply,
    RequestFinished,
    SessionStarted,
    TaskListStarted,
    TaskReported,
    Waiting,
)
from duckflow.i18n.catalogue import text
from duckflow.ui.lines import (
    action_line,
    approval_text,
    consultation_text,
    error_line,
    outcome_line,
    plan_text,
    report_text,
    start_line,
    tasks_line,
)

_NAMED = "llm.chosen_by_setting"
"""Whoever named the model need not be told which it is."""


class JsonLines:
    """Prints every event as one JSON object a line."""

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stdout

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Print an event; glimpses are not events."""
        if isinstance(what, Recorded):
            body = what.event.model_dump(mode="json", exclude={"exchange"})
            if isinstance(what.event, ErrorReported):
                body["message"] = text(what.event.key, **what.event.values)
            line = {"seq": what.seq, "at": what.at.isoformat(), **body}
            self._out.write(json.dumps(line, ensure_ascii=False) + "\n")
            self._out.flush()


class PlainText:
    """Replies go to standard output, all that is said about the work to standard error."""

    def __init__(self, session_id: str, out: TextIO | None = None, log: TextIO | None = None) -> None:
        self._session_id = session_id
        self._out = out or sys.stdout
        self._log = log or sys.stderr

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Print what a person who reads along wants to know."""
        if isinstance(what, Waiting):
            self._note(text("llm.waiting", reason=text(what.reason), seconds=round(what.wait_s)))
        elif isinstance(what, Recorded):
            self._event(what)

    def _event(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted(model_reason=reason) as started if reason != _NAMED:
                self._note(start_line(started))
            case Reply() as reply:
                self._out.write(reply.text.rstrip() + "\n")
                self._out.flush()
            case ActionFinished() as finished:
                self._note(action_line(finished))
            case ApprovalRequested() as asked:
                self._note(approval_text(asked.approval))
            case ConsultationRequested() as asked:
                self._note(consultation_text(asked.consultation))
            case PlanChanged() as changed:
                self._note(plan_text(changed))
            case TaskListStarted() as started:
                self._note(tasks_line(started))
            case TaskReported() as report:
                self._note(report_text(report))
            case ErrorReported() as error:
                self._note(error_line(error))
            case RequestFinished() as ended:
                self._note(outcome_line(ended, self._session_id))
            case _:
                pass

    def _note(self, line: str | None) -> None:
        if line:
            self._log.write(line + "\n")
            self._log.flush()
