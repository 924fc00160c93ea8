"""What each event is described as: one table for the terminal, `run`, transcripts, replays and exports.

An interface decides how a description is written (in colour, as Markdown, on a page), not what it says.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.events import ActionOutcome, Event
from duckflow.domain.live_updates import Waiting
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import ChooseWay, Consultation
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import current_language, text
from duckflow.ui.output.escaping import on_one_line, visible
from duckflow.ui.views.approval import points_text
from duckflow.ui.views.goal import attempt_text, evaluation_text, requirements_line
from duckflow.ui.views.live.progress import MARKS
from duckflow.ui.views.live.status_bar import short_model
from duckflow.ui.views.tool_lines import tool_lines
from duckflow.ui.views.undo import recovered_text, rewound_text, undone_text

EventKind = Literal[
    "session", "message", "reply", "action", "question", "answer", "note", "undo", "error", "outcome"
]
Tone = Literal["plain", "good", "bad", "warning", "quiet"]


class EventDescription(NamedTuple):
    """An event as the user reads it."""

    kind: EventKind
    text: str
    tone: Tone = "plain"
    output: tuple[str, ...] = ()
    """The last lines a command printed, as they came; `hidden` more are not shown."""
    hidden: int = 0
    difference: str = ""
    """What a question is about; it is shown before the question."""

    @property
    def plain(self) -> str:
        """All of it, for a reader of plain lines."""
        output = [f"  {line}" for line in self.output]
        return "\n".join(part for part in (self.difference.rstrip("\n"), self.text, *output) if part)


class Describer:
    """Describes events one after the other, since the end of an action does not repeat what was asked for.

    With `session_id`, which is for readers outside the conversation, an outcome says how to go on.
    """

    def __init__(self, session_id: str | None = None) -> None:
        self._session_id = session_id
        self._running: dict[str, Action] = {}
        self._asked: Approval | None = None
        self._background = False

    def __call__(self, event: Event) -> EventDescription | None:
        """The description; None for what a reader need not know."""
        match event:
            case events.ActionStarted():
                self._running[event.action_id] = event.action
                return None
            case events.ActionFinished(outcome="unknown") if event.action_id not in self._running:
                return None  # it was begun before a crash: what was found then tells of it
            case events.ActionFinished():
                asked = self._asked.action if self._asked else None
                return _action(event, self._running.pop(event.action_id, asked))
            case events.ApprovalRequested():
                self._asked = event.approval
                shown = points_text(event.approval)
                return EventDescription("question", shown, difference=visible(event.approval.difference))
            case events.TaskListStarted() | events.TaskReported():
                self._background = isinstance(event, events.TaskListStarted)
                return _by_table(event)
            case events.RequestFinished(outcome="deferred") if self._background:
                return None  # it goes on by itself
            case events.RequestFinished():
                said = _outcome_line(event, self._session_id, self._asked)
                return EventDescription("outcome", said, "warning") if said else None
            case _:
                return _by_table(event)


def waiting_line(waiting: Waiting) -> str:
    """That a model is asked again, why, and when."""
    reason = text(waiting.reason)
    if waiting.wait_s is None:
        return reason
    return text("llm.waiting", reason=reason, seconds=round(waiting.wait_s))


def error_text(event: events.ErrorReported) -> str:
    """What went wrong, for the user. What is wrong with a model's answer is told to models, in English."""
    if event.key == "llm.bad_answer" and current_language() != "en":
        return text("llm.bad_answer_plain")
    return text(event.key, **event.values)


def consultation_text(consultation: Consultation) -> str:
    """The situation, what is known of it, and the ways to go on, numbered."""
    known = [text(finding.key, **finding.values) for finding in consultation.findings]
    ways = [
        f"  {number}. {text(f'consultation.choice.{choice}')}"
        for number, choice in enumerate(consultation.choices, start=1)
    ]
    situation = text(consultation.situation, **consultation.values)
    return visible("\n".join([situation, *known, text("consultation.ways"), *ways]))


_HOOK = 80
_TONES: dict[ActionOutcome, Tone] = {
    "ok": "good",
    "failed": "bad",
    "refused": "warning",
    "unknown": "warning",
}


def _action(event: events.ActionFinished, action: Action | None) -> EventDescription:
    known = action if action is not None and action.operation == event.operation else None
    lines = tool_lines(event, known)
    return EventDescription("action", lines.line, _TONES[lines.outcome], lines.output, lines.hidden)


def _by_table(event: Event) -> EventDescription | None:
    row = _TABLE.get(type(event))
    if row is None:
        return None
    kind, tone, described = row
    said = described(event)
    return EventDescription(kind, said, tone) if said else None


def _start_line(event: events.SessionStarted) -> str:
    key = "start.resumed" if event.resumed else "start.new"
    reason = text(event.model_reason, **event.model_values)
    return text(key, model=short_model(event.model), reason=reason, mode=event.mode, session=event.session_id)


def _error_line(event: events.ErrorReported) -> str:
    message = error_text(event)
    return message if event.notice else text("error.line", message=message)


def _outcome_line(
    event: events.RequestFinished, session_id: str | None, asked: Approval | None = None
) -> str:
    if session_id is None:
        return text(f"stopped.{event.outcome}") if event.outcome in ("stopped", "interrupted") else ""
    if event.outcome in ("done", "accepted", "provider_error"):
        return ""  # it was said already
    if event.outcome != "awaiting_approval":
        return text(f"outcome.{event.outcome}", session=session_id)
    offered = [text("outcome.or_always")] if asked and asked.kind else []
    offered += [text("outcome.or_edit")] if asked and asked.editable else []
    return text("outcome.awaiting_approval", session=session_id, more="".join(offered))


def _answer_line(event: events.ApprovalAnswered) -> str:
    if event.edited is not None:
        return text("approval.edited")
    if event.allowed is not None:
        return text("approval.always")
    if event.yes:
        return text("approval.yes")
    because = text("action.because", reason=on_one_line(event.reason)) if event.reason.strip() else ""
    return text("approval.no", reason=because)


def _chosen_line(answer: ChooseWay) -> str:
    way = text(f"consultation.choice.{answer.choice}") if answer.choice else ""
    return " ".join(part for part in ("→", way, on_one_line(answer.text)) if part)


def _plan_text(event: events.PlanChanged) -> str:
    """One line for a small change; the whole plan if it is new."""
    plan = event.plan
    title = text(f"plan.{event.change}", name=plan.name, risk=text(f"plan.risk_{plan.risk}"))
    if event.change not in ("proposed", "revised"):
        return title
    steps = [f"  {MARKS[step.status]} {step.name}: {step.description}" for step in plan.steps]
    return "\n".join([title, *steps])


def _report_text(event: events.TaskReported) -> str:
    counts = text(
        f"tasks.{event.status}", completed=event.completed, failed=event.failed, pending=event.pending
    )
    said = (f"  {event.summary}",) if event.by == "model" else ()
    return "\n".join([counts, *said, *(f"  ✗ {failure}" for failure in event.failures)])


def _learned_line(event: events.MemoryKept) -> str:
    """What was learned without being told; what the user said to remember was asked about."""
    return "" if event.kind == "preference" else text("memory.learned", text=on_one_line(event.text))


def _hook_line(event: events.HookRan) -> str:
    """What a hook refused, asked for or could not do, or wants told; of all others nothing."""
    if event.outcome == "ok":
        return on_one_line(event.reason)
    command, reason = cut(on_one_line(event.command), _HOOK), on_one_line(event.reason)
    return text(f"hooks.{event.outcome}", event=event.hook, command=command, reason=reason)


def _ended_line(event: events.CommandEnded) -> str:
    """How a background command ended, if the line of an action or a report does not tell it."""
    if event.how not in ("ended", "with_request", "cancelled"):
        return ""
    command = on_one_line(event.command.command)
    return text(f"background.{event.how}", command=command, code=event.exit_code)


_Row = tuple[EventKind, Tone, Callable[[Any], str]]
_TABLE: Mapping[type[object], _Row] = {
    events.SessionStarted: ("session", "plain", _start_line),
    events.UserMessage: ("message", "plain", lambda event: event.text),
    events.Reply: ("reply", "plain", lambda event: event.text),
    events.ApprovalAnswered: ("answer", "quiet", _answer_line),
    events.ConsultationRequested: ("question", "plain", lambda event: consultation_text(event.consultation)),
    events.ConsultationAnswered: ("answer", "quiet", lambda event: _chosen_line(event.answer)),
    events.RequirementsFound: ("note", "plain", requirements_line),
    events.AttemptPlanned: ("note", "plain", attempt_text),
    events.Evaluated: ("note", "plain", evaluation_text),
    events.PlanChanged: ("note", "plain", _plan_text),
    events.TaskListStarted: (
        "note",
        "plain",
        lambda event: text("tasks.started", count=len(event.task_list.tasks)),
    ),
    events.TaskReported: ("note", "plain", _report_text),
    events.CommandEnded: ("note", "quiet", _ended_line),
    events.MemoryKept: ("note", "quiet", _learned_line),
    events.HookRan: ("note", "warning", _hook_line),
    events.ModeChanged: (
        "note",
        "quiet",
        lambda event: text("mode.now", mode=event.mode, means=text(f"status.means.{event.mode}")),
    ),
    events.EffortChanged: (
        "note",
        "quiet",
        lambda event: text("effort.now", effort=event.effort, means=text(f"effort.means.{event.effort}")),
    ),
    events.ModelChanged: ("note", "quiet", lambda event: text("model.changed", model=event.model)),
    events.Rewound: ("note", "quiet", rewound_text),
    events.Undone: ("undo", "plain", undone_text),
    events.Recovered: ("note", "warning", recovered_text),
    events.ErrorReported: ("error", "bad", _error_line),
}
"""Kind, tone and words of each event. Events that are not here are not for readers."""
