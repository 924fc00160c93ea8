"""What happens, printed as it happens: pieces of a reply at once, and the rest in lines."""

import sys

from duckflow.domain.events import (
    ActionFinished,
    ErrorReported,
    Glimpse,
    PlanChanged,
    Recorded,
    Reply,
    ReplyPiece,
    ReplyVoid,
    RequestFinished,
    SessionStarted,
    TaskListStarted,
    TaskReported,
    UserMessage,
    Waiting,
)
from duckflow.i18n.catalogue import text
from duckflow.ui.lines import (
    action_line,
    error_line,
    outcome_line,
    plan_text,
    report_text,
    start_line,
    tasks_line,
)

_CLEAR_LINE = "\r\x1b[2K"


class Screen:
    """Prints events for a person at a terminal."""

    def __init__(self) -> None:
        self._shown = ""
        self._thinks = False

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Show one thing."""
        match what:
            case ReplyPiece():
                self._write(what.text if self._shown else f"\n{what.text}")
                self._shown += what.text
            case ReplyVoid():
                self._end_reply()
            case Waiting():
                self._line(text("llm.waiting", reason=text(what.reason), seconds=round(what.wait_s)))
            case Recorded():
                self._event(what)

    def _event(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted() as started:
                self._line(start_line(started))
            case UserMessage():
                self._think()
            case Reply() as reply:
                self._reply(reply.text)
            case ActionFinished() as finished:
                self._line(action_line(finished))
            case PlanChanged() as changed:
                self._line(plan_text(changed))
            case TaskListStarted() as started:
                self._line(tasks_line(started))
            case TaskReported() as report:
                self._line(report_text(report))
            case ErrorReported() as error:
                self._line(error_line(error))
            case RequestFinished() as ended:
                self._write("")
                self._line(outcome_line(ended, None))
            case _:
                pass

    def _reply(self, reply: str) -> None:
        """The rest of a reply that was partly shown already, or all of it."""
        if self._shown and reply.startswith(self._shown):
            self._write(reply[len(self._shown) :] + "\n")
        else:
            self._end_reply()
            self._write(f"\n{reply}\n")
        self._shown = ""

    def _end_reply(self) -> None:
        if self._shown:
            self._write("\n")
        self._shown = ""

    def _line(self, line: str | None) -> None:
        if line:
            self._end_reply()
            self._write(f"{line}\n")

    def _think(self) -> None:
        """A word that the work has begun, gone with the first thing that comes of it."""
        if sys.stdout.isatty():
            self._write(text("chat.thinking"))
            self._thinks = True

    def _write(self, characters: str) -> None:
        if self._thinks:
            sys.stdout.write(_CLEAR_LINE)
            self._thinks = False
        sys.stdout.write(characters)
        sys.stdout.flush()
