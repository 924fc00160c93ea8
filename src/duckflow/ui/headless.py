"""One task without a terminal: events as text or as JSON lines. Never waits for input (SPEC M3)."""

import json
import sys
from typing import TextIO

from duckflow.domain.errors import UserError
from duckflow.domain.events import (
    ActionFinished,
    ApprovalRequested,
    AttemptPlanned,
    ConsultationRequested,
    ErrorReported,
    Evaluated,
    MemoryKept,
    PlanChanged,
    Recorded,
    Recovered,
    Reply,
    RequestFinished,
    RequirementsFound,
    SessionStarted,
    TaskListStarted,
    TaskReported,
)
from duckflow.domain.glimpses import Glimpse, Waiting
from duckflow.i18n.catalogue import text
from duckflow.ui.views.events import (
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
from duckflow.ui.views.goal import satisfaction_text
from duckflow.ui.views.memory import learned_line
from duckflow.ui.views.undo import recovered_text

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
            elif isinstance(what.event, ConsultationRequested):
                body["message"] = consultation_text(what.event.consultation)
            line = {"seq": what.seq, "at": what.at.isoformat(), **body}
            _put(self._out, json.dumps(line, ensure_ascii=False))


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
                _put(self._out, reply.text.rstrip())
            case ActionFinished() as finished:
                self._note(action_line(finished))
            case ApprovalRequested() as asked:
                self._note(approval_text(asked.approval))
            case ConsultationRequested() as asked:
                self._note(consultation_text(asked.consultation))
            case RequirementsFound() | AttemptPlanned() | Evaluated() as told:
                self._note(satisfaction_text(told))
            case PlanChanged() as changed:
                self._note(plan_text(changed))
            case TaskListStarted() as started:
                self._note(tasks_line(started))
            case TaskReported() as report:
                self._note(report_text(report))
            case MemoryKept() as kept:
                self._note(learned_line(kept))
            case Recovered() as found:
                self._note(recovered_text(found))
            case ErrorReported() as error:
                self._note(error_line(error))
            case RequestFinished() as ended:
                self._note(outcome_line(ended, self._session_id))
            case _:
                pass

    def _note(self, line: str | None) -> None:
        if line:
            _put(self._log, line)


def _put(out: TextIO, line: str) -> None:
    """Write a line at once; a disk that is full under a redirected output is the user's to mend."""
    try:
        out.write(line + "\n")
        out.flush()
    except BrokenPipeError:
        raise  # whoever read has gone: a usual end, not a fault
    except OSError as exc:
        raise UserError("run.output_failed", reason=exc.strerror or str(exc)) from exc
