"""Events as lines of text, in the user's language."""

from duckflow.domain.commands import ChooseWay
from duckflow.domain.consultation import Consultation
from duckflow.domain.events import (
    ActionFinished,
    ErrorReported,
    PlanChanged,
    RequestFinished,
    SessionStarted,
    TaskListStarted,
    TaskReported,
)
from duckflow.domain.plan import WorkStatus
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import harmless, on_one_line, visible
from duckflow.ui.output.text_width import cut_to_width
from duckflow.ui.views.approval import approval_text as approval_text  # noqa: PLC0414 - drawn with the other lines
from duckflow.ui.views.status_bar import short_model

_RESULT = 160
_DID = {
    "file_ops.read_file": "did.read_file",
    "file_ops.write_file": "did.write_file",
    "file_ops.edit_file": "did.edit_file",
    "file_ops.delete_file": "did.delete_file",
    "file_ops.move_file": "did.move_file",
    "file_ops.outline": "did.outline",
}
"""Operations whose success is told in words; of the others the first line of their result is shown."""
_MARKS: dict[WorkStatus, str] = {"pending": "○", "in_progress": "◐", "completed": "●", "failed": "✗"}


def start_line(event: SessionStarted) -> str:
    """Which model works here, and why that one."""
    key = "start.resumed" if event.resumed else "start.new"
    reason = text(event.model_reason, **event.model_values)
    return text(key, model=short_model(event.model), reason=reason, mode=event.mode, session=event.session_id)


def action_line(event: ActionFinished) -> str:
    """One action and how it ended."""
    target = event.path or ""
    if event.outcome == "ok" and target and event.operation in _DID:
        return text(_DID[event.operation], target=target)
    first = cut(event.text.strip().partition("\n")[0], _RESULT)
    did = f"{event.operation} {target}".rstrip()
    return text(f"action.{event.outcome}", did=did, result=first).rstrip()


def error_line(event: ErrorReported) -> str:
    """What went wrong and what to do; or only what is good to know."""
    message = text(event.key, **event.values)
    return message if event.notice else text("error.line", message=message)


def outcome_line(event: RequestFinished, session_id: str | None) -> str | None:
    """What the user should know when the work stops; with a session, also how to go on from outside it."""
    if session_id is not None:
        said_already = event.outcome in ("done", "provider_error")
        return None if said_already else text(f"outcome.{event.outcome}", session=session_id)
    return text(f"stopped.{event.outcome}") if event.outcome in ("stopped", "interrupted") else None


def consultation_text(consultation: Consultation) -> str:
    """The situation, what is known of it, and the ways to go on, numbered."""
    known = [text(finding.key, **finding.values) for finding in consultation.findings]
    ways = [
        f"  {number}. {text(f'consultation.choice.{choice}')}"
        for number, choice in enumerate(consultation.choices, start=1)
    ]
    situation = text(consultation.situation, **consultation.values)
    return visible("\n".join([situation, *known, text("consultation.ways"), *ways]))


def chosen_line(answer: ChooseWay) -> str:
    """Which way the user chose, in the words of the question, and their own."""
    way = text(f"consultation.choice.{answer.choice}") if answer.choice else ""
    return f"→ {way} {on_one_line(answer.text)}".replace("→  ", "→ ").rstrip()


def plan_text(event: PlanChanged) -> str:
    """A plan as it is now: one line for a small change, all of it when it is new."""
    plan = event.plan
    title = text(f"plan.{event.change}", name=plan.name, risk=text(f"plan.risk_{plan.risk}"))
    if event.change not in ("proposed", "revised"):
        return title
    steps = [f"  {_MARKS[step.status]} {step.name}: {step.description}" for step in plan.steps]
    return "\n".join([title, *steps])


def tasks_line(event: TaskListStarted) -> str:
    """That work began in the background."""
    return text("tasks.started", count=len(event.task_list.tasks))


def report_text(event: TaskReported) -> str:
    """How the tasks of the background ended."""
    counts = text(
        f"tasks.{event.status}", completed=event.completed, failed=event.failed, pending=event.pending
    )
    said = (f"  {event.summary}",) if event.by == "model" else ()
    return "\n".join([counts, *said, *(f"  ✗ {failure}" for failure in event.failures)])


_COMMAND = "shell.run"
_TAIL = 3


def tool_lines(event: ActionFinished, columns: int) -> list[str]:
    """One line; for a command its last lines too, and how much more there is to expand."""
    first = action_line(event)
    lines = [line for line in event.text.strip().split("\n") if line.strip()]
    if event.operation != _COMMAND:
        hidden = len(lines) - 1
        return (
            [first, f"  {text('action.more', count=hidden)}"]
            if hidden > 0 and event.outcome != "ok"
            else [first]
        )
    tail = [f"  {cut_to_width(harmless(line.expandtabs(4)), columns - 3)}" for line in lines[1:][-_TAIL:]]
    hidden = len(lines) - 1 - len(tail)
    more = [f"  {text('action.more', count=hidden)}"] if hidden > 0 else []
    return [first, *more, *tail]
