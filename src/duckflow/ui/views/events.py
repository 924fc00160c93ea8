"""Descriptions of events: one table for the terminal, `run`, transcripts, replays, exports and the page.

An interface only decides how to write a description: in colour, as Markdown, or on a web page.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import PurePath
from typing import Any, Literal, NamedTuple

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.events import ActionOutcome, Event
from duckflow.domain.live_updates import Waiting
from duckflow.domain.model import EffortChoice
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.text import cut
from duckflow.domain.work.outcomes import ENDED
from duckflow.i18n.catalogue import current_language, text
from duckflow.i18n.plans import plan_in_words
from duckflow.ui.output.escaping import on_one_line, visible
from duckflow.ui.views.agents import agent_ended_line, agent_started_line
from duckflow.ui.views.approval import kind_text, points_text
from duckflow.ui.views.goal import attempt_text, evaluation_text, is_untested, requirements_line
from duckflow.ui.views.live.progress import action_name, plan_line
from duckflow.ui.views.live.status_bar import model_title, short_model
from duckflow.ui.views.review import review_text
from duckflow.ui.views.summary import RequestSummary
from duckflow.ui.views.undo import recovered_text, rewound_text, undone_text

EventKind = Literal[
    "session",
    "message",
    "reply",
    "action",
    "question",
    "answer",
    "note",
    "setting",
    "undo",
    "error",
    "outcome",
]
Tone = Literal["plain", "good", "bad", "warning", "quiet"]


class EventDescription(NamedTuple):
    """Text and kind of an event for the user."""

    kind: EventKind
    text: str
    tone: Tone = "plain"
    output: tuple[str, ...] = ()
    """Last lines of a command's output. `hidden` is the number of lines that are left out."""
    hidden: int = 0
    whole: bool = False
    """True if the user asked for the output, so that its lines are not cut."""
    command: str = ""
    """Command that ran, if the text shows all of it."""
    full: str = ""
    """Everything that an action showed, for Ctrl-O."""
    notes: tuple[str, ...] = ()
    """Remarks below the output: effects of the action and their meaning."""
    difference: str = ""
    """Diff of the change that a question is about. It is shown after the question."""

    @property
    def plain(self) -> str:
        """The whole description, as plain lines."""
        output = [f"  {line}" for line in (*self.output, *self.notes)]
        return "\n".join(part for part in (self.text, self.difference.rstrip("\n"), *output) if part)


class Describer:
    """Describes events in order. It remembers arguments, because the end of an action does not repeat them.

    With `session_id`, for readers outside the conversation, outcomes say how to continue.
    """

    def __init__(self, session_id: str | None = None) -> None:
        self._session_id = session_id
        self._running: dict[str, Action] = {}
        self._asked: Approval | None = None
        self._summary = RequestSummary()
        self._background = False
        self._replied = False
        """True if the model has given its last words on the request."""
        self._closing: str | None = None
        """Those words, if the last decision has actions before them; empty if more decisions follow."""
        self._listed = 0
        """Number of requirements that was told last in this request."""
        self._refused = False
        """True if the open question is what to do instead of a refused action."""

    def __call__(self, event: Event) -> EventDescription | None:
        """Return the description of an event, None if the user need not see it."""
        if isinstance(event, events.DecisionMade):
            self._replied, self._closing = False, event.closing if event.decision.actions else None
        elif isinstance(event, events.Reply):
            self._replied = self._closing is None or event.text == self._closing
        match event:
            case events.ActionStarted():
                self._running[event.action_id] = event.action
                return None
            case events.ActionFinished(outcome="unknown") if event.action_id not in self._running:
                return None  # it started before a crash, and the `Recovered` event reports it
            case events.ActionFinished():
                asked = self._asked.action if self._asked else None
                action = self._running.pop(event.action_id, asked)
                known = action if action is not None and action.operation == event.operation else None
                self._summary.note(event, known)
                return _describe_action(event, known)
            case events.ApprovalRequested():
                self._asked = event.approval
                shown = points_text(event.approval)
                return EventDescription("question", shown, difference=visible(event.approval.difference))
            case events.RequestFinished():
                summary = self._summary.text() if event.outcome in ENDED else ""
                said = "\n".join(part for part in (summary, self._outcome_line(event)) if part)
                kind, tone = "outcome", "plain" if summary else "warning"
                self._refused = False
                self._listed = 0 if event.outcome in ENDED else self._listed
            case events.Evaluated() if event.evaluation.done and not event.results and not self._summary:
                return None  # the user can judge an answer that changed nothing
            case events.Evaluated() if is_untested(event) and not self._summary.wrote_code:
                return None  # texts, renamed and deleted files need no test
            case events.RequirementsFound() if self._replied or len(event.requirements) == self._listed:
                return None  # the verdict follows, and /goal lists them
            case _:
                self._summary.note(event)
                if isinstance(event, events.RequirementsFound):
                    self._listed = len(event.requirements)
                if isinstance(event, events.ConsultationRequested):
                    self._refused = event.kind == "instead"
                if isinstance(event, events.TaskListStarted | events.TaskReported):
                    self._background = isinstance(event, events.TaskListStarted)
                if type(event) not in _TABLE:
                    return None
                kind, tone, words = _TABLE[type(event)]
                said = words(event)
                if isinstance(event, events.Undone) and event.action_id:
                    kind = "note"  # the model's own, which no window has shown as an answer to a command
        return EventDescription(kind, said, tone) if said else None

    def _outcome_line(self, event: events.RequestFinished) -> str:
        if event.outcome == "deferred" and self._background:
            return ""  # the work continues automatically
        if self._session_id is None:
            return text(f"stopped.{event.outcome}") if event.outcome in _SAYS_HOW_TO_CONTINUE else ""
        if event.outcome in ("done", "accepted", "provider_error"):
            return ""  # an earlier event says so
        if event.outcome == "consultation" and self._refused:
            return text("outcome.instead", session=self._session_id)
        if event.outcome != "awaiting_approval":
            return text(f"outcome.{event.outcome}", session=self._session_id)
        offered = [text("outcome.or_always")] if self._asked and self._asked.kind else []
        offered += [text("outcome.or_edit")] if self._asked and self._asked.editable else []
        return text("outcome.awaiting_approval", session=self._session_id, more="".join(offered))


_FOR_MODELS = {"llm.bad_answer": "llm.bad_answer_plain", "llm.bad_last_answer": "llm.bad_last_answer_plain"}
"""Errors whose details are in English, and the catalogue keys of the same errors without details."""


def waiting_line(waiting: Waiting) -> str:
    """Return a line that says that a model is asked again, why, and when."""
    reason, wait_s = text(waiting.reason), waiting.wait_s
    return reason if wait_s is None else text("llm.waiting", reason=reason, seconds=round(wait_s))


def error_text(event: events.ErrorReported) -> str:
    """Return the text of an error, without English details if the user's language is another one."""
    if event.key in _FOR_MODELS and current_language() != "en":
        return text(_FOR_MODELS[event.key])
    return text(event.key, **event.values)


def mode_line(mode: Mode) -> str:
    """Return a line with the mode and its meaning."""
    return text("mode.now", mode=mode, means=text(f"status.means.{mode}"))


def effort_line(effort: EffortChoice) -> str:
    """Return a line with the thinking effort and its meaning."""
    return text("effort.now", effort=effort, means=text(f"effort.means.{effort}"))


def situation_text(consultation: Consultation) -> str:
    """Return the situation of a consultation, and the findings about it."""
    lines = [text(consultation.situation, **consultation.values)]
    lines += [text(finding.key, **finding.values) for finding in consultation.findings]
    return visible("\n".join(lines))


def consultation_text(consultation: Consultation) -> str:
    """Return the text of a consultation: situation, findings, and numbered choices."""
    lines = [situation_text(consultation)]
    if consultation.kind == "instead":  # only the user's words help here, or a stop
        return lines[0]
    lines.append(text("consultation.ways"))
    for number, choice in enumerate(consultation.choices, start=1):
        lines.append(f"  {number}. {text(f'consultation.choice.{choice}')}")
    return visible("\n".join(lines))


_SAYS_HOW_TO_CONTINUE = ("stopped", "interrupted", "provider_error")
"""Outcomes after which the conversation says what the user can do."""
_COMMAND = "shell.run"
_WRITES = (_COMMAND, "shell.start", "shell.read", "shell.stop")
_TOLD_BY_EVENT = (
    *("plan_tool.propose", "plan_tool.revise", "plan_tool.approve", "plan_tool.update_step"),
    *("task_loop.run", "task_loop.cancel", "changes.undo"),
)
"""Operations whose success is shown by an answer, a question or a line about the plan."""
_SHOWS = ("file_ops.read_file", "web.fetch", "web.search")
"""Operations whose results have a heading for the model above what they show."""
_SHOWS_ONLY = ("file_ops.list_files", "file_ops.search", "file_ops.outline", "skill.read")
"""Operations whose results are what they show."""
_TONES: Mapping[ActionOutcome, Tone] = {"ok": "good", "failed": "bad"}
_RESULT = 160
_TAIL = 3
_NOTE = 400
_HOOK = 80
_TITLE = 60


def _describe_action(event: events.ActionFinished, action: Action | None) -> EventDescription | None:
    """Tools answer the model, in English: readers of other languages see only the action and its outcome."""
    if event.declined in ("now", "later") or (event.outcome == "ok" and event.operation in _TOLD_BY_EVENT):
        return None  # shown with another event
    if event.declined == "before":
        return EventDescription("action", text("action.declined_before"), "quiet")
    if event.declined == "outdated":
        did = action_name(event.operation, action.args if action else {}, event.path, done=False)
        return EventDescription("action", text("action.outdated", did=did), "quiet")
    if event.unchanged:
        return EventDescription("action", text("action.unchanged", path=on_one_line(event.path or "")))
    ended = event.operation == _COMMAND and event.outcome == "ok"
    outcome: ActionOutcome = "failed" if ended and event.exit_code != 0 else event.outcome
    said = [line for line in event.text.strip().split("\n") if line.strip()]
    reason = _reason(event, said) if outcome != "ok" else ""
    because = text("action.because", reason=reason) if reason else ""
    did = action_name(event.operation, action.args if action else {}, event.path, done=outcome == "ok")
    if event.tests_failed:
        line = text("action.tests_failed", did=did, said=on_one_line(event.tests_failed))
    else:
        line = text(f"action.{outcome}", did=did, reason=because)
    typed = str(action.args.get("command", "")) if action is not None and event.operation == _COMMAND else ""
    command = typed if typed and typed in line else ""  # a long one is cut there
    tone = "warning" if event.tests_failed else _TONES.get(outcome, "warning")
    notes = tuple(cut(on_one_line(text(one.key, **one.values)), _NOTE) for one in event.told)
    if event.operation in _WRITES and event.outcome == "ok":
        before, after = event.frame
        lines = event.text.rstrip("\n").split("\n")
        output = [one for one in lines[before : len(lines) - after] if one.strip()]
        most = len(output) if event.by_user else _TAIL + 1  # a single line is shown, not counted
        hidden = len(output) - _TAIL if len(output) > most else 0
        full = "\n".join([line, *lines[before : len(lines) - after], *notes])
        return EventDescription(
            "action", line, tone, tuple(output[hidden:]), hidden, event.by_user, command, full, notes
        )
    shown = 1 if reason or outcome == "unknown" else 0  # the first line only says that it was stopped
    hidden = 0 if outcome == "ok" else max(len(said) - shown, 0)
    shows = event.text.rstrip("\n").split("\n") if outcome == "ok" else []
    shows = shows if event.operation in _SHOWS_ONLY else shows[1:] if event.operation in _SHOWS else []
    full = event.text if current_language() == "en" else "\n".join([line, *shows, *notes])
    return EventDescription("action", line, tone, hidden=hidden, full=full, notes=notes)


def _reason(event: events.ActionFinished, said: list[str]) -> str:
    """Return why an action did not succeed. Messages for the model are in English."""
    if event.reason is not None:
        return on_one_line(text(event.reason.key, **event.reason.values))
    if event.outcome == "unknown":
        return ""  # the line itself says that it was stopped
    if event.outcome == "ok":
        code = event.exit_code
        return text("action.stopped") if code is None else text("action.exit_code", code=code)
    return cut(on_one_line(said[0]), _RESULT) if said and current_language() == "en" else ""


def _permission_line(event: events.PermissionChanged) -> str:
    return text(f"permissions.{event.change}", kind=kind_text(event.kind))


def _start_line(event: events.SessionStarted) -> str:
    embedded = event.model.startswith("embedded")
    model = text("start.embedded", model=model_title(event.model)) if embedded else short_model(event.model)
    reason = text(event.model_reason, **event.model_values)
    if not event.resumed:
        return text("start.new", model=model, reason=reason, mode=event.mode)
    title = cut(on_one_line(event.title), _TITLE) or text("session.untitled")
    folder = on_one_line(PurePath(event.workspace).name or event.workspace)
    used = datetime.fromisoformat(event.last_used) if event.last_used else None
    when = used.astimezone().strftime("%Y-%m-%d %H:%M") if used else ""
    place = " · ".join(part for part in (folder, when) if part)
    return text("start.resumed", title=title, place=place, model=model, reason=reason, mode=event.mode)


def _answer_line(event: events.ApprovalAnswered) -> str:
    if event.edited is not None:
        return text("approval.edited")
    if event.allowed is not None:
        return text("approval.always", kind=kind_text(event.allowed))
    if event.yes:
        return text("approval.yes")
    if event.stopped:
        return text("approval.stopped")
    because = text("action.because", reason=on_one_line(event.reason)) if event.reason.strip() else ""
    return text("approval.no", reason=because)


def _chosen_line(event: events.ConsultationAnswered) -> str:
    way = text(f"consultation.choice.{event.answer.choice}") if event.answer.choice else ""
    return " ".join(part for part in ("→", way, on_one_line(event.answer.text)) if part)


def _plan_text(event: events.PlanChanged) -> str:
    plan = event.plan
    if event.change in ("proposed", "revised"):
        return "" if event.asks else plan_in_words(plan, event.change)
    return plan_line(plan) if event.change == "step" else ""  # the line of the action says the rest


def _report_text(event: events.TaskReported) -> str:
    counts = text(
        f"tasks.{event.status}", completed=event.completed, failed=event.failed, pending=event.pending
    )
    said = (f"  {event.summary}",) if event.by == "model" else ()
    failures = () if event.status == "cancelled" else event.failures
    return "\n".join([counts, *said, *(f"  ✗ {failure}" for failure in failures)])


def _learned_line(event: events.MemoryKept) -> str:
    # The user has approved the preference and knows about it.
    return "" if event.kind == "preference" else text("memory.learned", text=on_one_line(event.text))


def _error_line(event: events.ErrorReported) -> str:
    message = error_text(event)
    return message if event.notice else text("error.line", message=message)


def _hook_line(event: events.HookRan) -> str:
    if event.outcome == "ok":
        return on_one_line(event.reason)  # empty if the hook has nothing to say
    command, reason = cut(on_one_line(event.command), _HOOK), on_one_line(event.reason)
    return text(f"hooks.{event.outcome}", event=event.hook, command=command, reason=reason)


def _ended_line(event: events.CommandEnded) -> str:
    if event.how not in ("ended", "with_request", "cancelled"):
        return ""  # the line of an action or a report says so
    return text(f"background.{event.how}", command=on_one_line(event.command.command), code=event.exit_code)


_TABLE: Mapping[type[object], tuple[EventKind, Tone, Callable[[Any], str]]] = {
    events.SessionStarted: ("session", "plain", _start_line),
    events.UserMessage: ("message", "plain", lambda event: event.text),
    events.Reply: ("reply", "plain", lambda event: event.text),
    events.ApprovalAnswered: ("answer", "quiet", _answer_line),
    events.ConsultationRequested: ("question", "plain", lambda event: consultation_text(event.consultation)),
    events.ConsultationAnswered: ("answer", "quiet", _chosen_line),
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
    events.AgentStarted: ("note", "quiet", agent_started_line),
    events.AgentEnded: ("note", "quiet", agent_ended_line),
    events.ReviewFinished: ("note", "plain", lambda event: review_text(event.report)),
    events.MemoryKept: ("note", "quiet", _learned_line),
    events.HookRan: ("note", "warning", _hook_line),
    events.ModeChanged: ("setting", "quiet", lambda event: mode_line(event.mode)),
    events.PermissionChanged: ("setting", "quiet", _permission_line),
    events.EffortChanged: ("setting", "quiet", lambda event: effort_line(event.effort)),
    events.ModelChanged: ("setting", "quiet", lambda event: text("model.changed", model=event.model)),
    events.Rewound: ("note", "quiet", rewound_text),
    events.Undone: ("undo", "plain", undone_text),
    events.Recovered: ("note", "warning", recovered_text),
    events.ErrorReported: ("error", "bad", _error_line),
}
"""Kind, tone and text of each event. Events that are missing here are not shown."""
