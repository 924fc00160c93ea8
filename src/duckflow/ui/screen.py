"""What happens, printed as it happens: pieces of a reply at once, and the rest in lines."""

from duckflow.domain.events import (
    ActionFinished,
    ActionOutcome,
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
from duckflow.ui.colours import Colour
from duckflow.ui.lines import (
    action_line,
    error_line,
    outcome_line,
    plan_text,
    report_text,
    start_line,
    tasks_line,
)
from duckflow.ui.paper import Paper

_OUTCOMES: dict[ActionOutcome, Colour] = {
    "ok": "green",
    "failed": "red",
    "refused": "yellow",
    "unknown": "yellow",
}


class Screen:
    """Prints events for a person at a terminal."""

    def __init__(self, paper: Paper) -> None:
        self._paper = paper
        self._shown = ""

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Show one thing."""
        match what:
            case ReplyPiece():
                self._paper.run(what.text if self._shown else f"\n{what.text}")
                self._shown += what.text
            case ReplyVoid():
                self._end_reply()
            case Waiting():
                self._line(text("llm.waiting", reason=text(what.reason), seconds=round(what.wait_s)), "dim")
            case Recorded():
                self._event(what)

    def _event(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted() as started:
                self._line(start_line(started))
            case UserMessage():
                self._paper.sign()
            case Reply() as reply:
                self._reply(reply.text)
            case ActionFinished() as finished:
                self._line(action_line(finished), _OUTCOMES[finished.outcome])
            case PlanChanged() as changed:
                self._line(plan_text(changed))
            case TaskListStarted() as started:
                self._line(tasks_line(started))
            case TaskReported() as report:
                self._line(report_text(report))
            case ErrorReported() as error:
                self._line(error_line(error), "red")
            case RequestFinished() as ended:
                self._end_reply()
                self._line(outcome_line(ended, None), "yellow")
            case _:
                pass

    def _reply(self, reply: str) -> None:
        """The rest of a reply that was partly shown already, or all of it."""
        if self._shown and reply.startswith(self._shown):
            self._paper.run(reply[len(self._shown) :])
        else:
            self._end_reply()
            self._paper.run(f"\n{reply}")
        self._shown = ""
        self._paper.end()

    def _end_reply(self) -> None:
        if self._shown:
            self._paper.end()
        self._shown = ""

    def _line(self, line: str | None, colour: Colour | None = None) -> None:
        if line:
            self._end_reply()
            self._paper.line(line, colour)
