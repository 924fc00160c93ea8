"""What happens, written down as it happens: replies block by block, the rest in lines."""

from duckflow.domain.events import (
    ActionFinished,
    ActionOutcome,
    AttemptPlanned,
    ErrorReported,
    Evaluated,
    Event,
    MemoryKept,
    ModeChanged,
    ModelChanged,
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
from duckflow.domain.glimpses import Glimpse, OutputPiece, ReplyPiece, ReplyVoid, Waiting
from duckflow.i18n.catalogue import text
from duckflow.ui.output.colours import Colour, paint
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.output.reply_stream import ReplyStream
from duckflow.ui.output.writer import Writer
from duckflow.ui.views.activity import Activity
from duckflow.ui.views.events import (
    error_line,
    outcome_line,
    plan_text,
    report_text,
    start_line,
    tasks_line,
    tool_lines,
)
from duckflow.ui.views.goal import satisfaction_text
from duckflow.ui.views.memory import learned_line
from duckflow.ui.views.undo import recovered_text

_OUTCOMES: dict[ActionOutcome, Colour] = {
    "ok": "green",
    "failed": "red",
    "refused": "yellow",
    "unknown": "yellow",
}


class Screen:
    """Writes events and glimpses."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._replies = ReplyStream(writer)
        self._shown: list[str] = []
        self._last: ActionFinished | None = None
        self.activity = Activity(self._replies.preview)

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Show one thing."""
        match what:
            case ReplyPiece():
                self._shown.append(what.text)
                self._replies.feed(what.text)
            case ReplyVoid():
                self._end_reply()
            case Waiting():
                self._line(text("llm.waiting", reason=text(what.reason), seconds=round(what.wait_s)), "dim")
            case OutputPiece():
                self.activity.add_output(what.text)
            case Recorded():
                self._event(what.event)

    def expand(self) -> None:
        """Show the last result whole."""
        if self._last is None:
            self._line(text("chat.nothing_to_expand"), "dim")
            return
        self._writer.raw(visible(self._last.text))

    def _event(self, event: Event) -> None:
        match event:
            case Reply():
                self._reply(event.text)
            case ActionFinished():
                self._acted(event)
            case RequestFinished():
                self._end_reply()
                self._line(outcome_line(event, None), "yellow")
            case Recovered():
                self._line(recovered_text(event), "yellow")
            case ErrorReported():
                self._line(error_line(event), "red")
            case SessionStarted():
                self._line(start_line(event))
            case RequirementsFound() | AttemptPlanned() | Evaluated():
                self._line(satisfaction_text(event))
            case ModeChanged():
                means = text(f"status.means.{event.mode}")
                self._line(text("mode.now", mode=event.mode, means=means), "dim")
            case ModelChanged():
                self._line(text("model.changed", model=event.model), "dim")
            case PlanChanged():
                self._line(plan_text(event))
            case TaskListStarted():
                self._line(tasks_line(event))
            case TaskReported():
                self._line(report_text(event))
            case MemoryKept():
                self._line(learned_line(event), "dim")
            case _:
                pass

    def said(self, message: str) -> None:
        """What the user said stands above what came of it."""
        if not self._writer.formatted:
            return
        prompt = text("chat.prompt")
        lines = harmless(message).expandtabs(4).replace("\n", f"\n{' ' * len(prompt)}")
        self._writer.raw(f"\n{paint(prompt + lines, 'bold') if self._writer.coloured else prompt + lines}")

    def _acted(self, event: ActionFinished) -> None:
        self._end_reply()
        self.activity.forget_output()
        self._last = event
        first, *more = tool_lines(event, self._writer.columns)
        self._writer.line(first, _OUTCOMES[event.outcome])
        self._writer.raw(*(paint(line, "dim") if self._writer.coloured else line for line in more))

    def _reply(self, reply: str) -> None:
        """The rest of a reply that was partly shown already, or all of it."""
        shown = "".join(self._shown)
        if shown and reply.startswith(shown):
            rest = reply[len(shown) :]
        else:
            self._end_reply()
            rest = reply
        self._shown = []
        self._replies.feed(rest)
        self._replies.end()

    def _end_reply(self) -> None:
        if self._shown:
            self._replies.end()
        self._shown = []

    def _line(self, line: str | None, colour: Colour | None = None) -> None:
        if line:
            self._end_reply()
            self._writer.line(line, colour)
