"""Data about a session for the web page, event by event: in the user's language, never markup."""

from collections.abc import Callable, Sequence
from typing import Any

from duckflow.domain import events
from duckflow.domain.commands import hash_of
from duckflow.domain.events import StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.pacing.vitals import VITALS, VitalName, face_of
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation, effect_of
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import rewind
from duckflow.domain.session_client import works_after
from duckflow.domain.state import Request, TierUsage, new_state
from duckflow.domain.text import percent
from duckflow.domain.work.plan import Plan, Task
from duckflow.i18n.catalogue import text
from duckflow.ui.output.diff import difference_rows
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.views.approval import approval_view
from duckflow.ui.views.events import Describer, situation_text
from duckflow.ui.views.live.progress import MARKS, task_name
from duckflow.ui.views.live.status_bar import short_model

Payload = dict[str, Any]

_EDIT = "approval.instead.edit"
"""Alternative that the page does not offer, because there an answer can only apply to the change shown."""
_MAX_CHART_POINTS = 500
RUN_PREFIX = "run-"
"""Beginning of the ids that fleet runs have on the page."""


class SessionView:
    """Turns events into entries for the page, and keeps the current state."""

    def __init__(self, session_id: str) -> None:
        self.state = new_state(session_id)
        self.seq = 0
        self._id = session_id
        self._describe = Describer()
        self._points: list[Payload] = []
        self._working = False

    def take(self, recorded: StoredEvent, earlier: Callable[[], Sequence[StoredEvent]]) -> Payload | None:
        """Apply an event, and return its entry. None if the user need not see the event."""
        back = 0
        if isinstance(recorded.event, events.Rewound) and recorded.event.conversation:
            back = recorded.event.to
            self.state = rewind(self.state, recorded, earlier())
        else:
            self.state = apply(self.state, recorded)
        self.seq = recorded.seq
        self._note(recorded)
        self._working = works_after(recorded.event, self._working)
        described = self._describe(recorded.event)
        if described is None:
            return None
        finished = recorded.event if isinstance(recorded.event, events.ActionFinished) else None
        return {
            "seq": recorded.seq,
            "at": recorded.at.isoformat(),
            "kind": described.kind,
            "tone": described.tone,
            "text": harmless(described.text),
            "output": [harmless(line) for line in (*described.output, *described.notes)],
            "hidden": described.hidden,
            "evidence": finished.evidence_id if finished else "",
            "difference": rows_of(described.difference),
            "back": back,
        }

    def now(self) -> Payload:
        """Return the current state, for the parts of the page around the conversation."""
        state = self.state
        request = state.request or state.finished
        return {
            "id": self._id,
            "workspace": harmless(state.workspace),
            "model": harmless(short_model(state.model)),
            "mode": state.mode,
            "working": self._working,
            "vitals": [_vital(name, getattr(state.vitals, name)) for name in VITALS],
            "points": self._points,
            "goal": _goal(request) if request else None,
            "plans": [_plan(plan, active=plan.plan_id == state.active_plan_id) for plan in state.plans],
            "tasks": [_task(task) for task in state.task_list.tasks] if state.task_list else [],
            "cost": [_cost(tier, used) for tier, used in state.usage.items()],
            "undoable": any(one.changes and not one.by_undo and not one.undone for one in state.change_sets),
        }

    def question(self, run: Payload | None = None) -> Payload | None:
        """Return the open question as data. A fleet run has one only while it waits, maybe for free text."""
        asked = self.state.question
        if run is not None and (asked is None or run["question"] is None):
            return run["question"]
        if isinstance(asked, Approval):
            return approval_payload(asked)
        return consultation_payload(asked) if asked is not None else None

    def _note(self, recorded: StoredEvent) -> None:
        event, why = recorded.event, list[str]()
        match event:
            case events.UserMessage():
                why = [text("web.moved.message")]
            case events.LimitSet():
                grown = event.extended_from is not None
                key = "web.moved.extended" if grown else "web.moved.limit"
                why = [text(key, limit=event.limit.limit)]
            case events.VitalsChanged():
                why = [text(f"web.moved.{one}") for one in event.moved_by]
                why += [text("web.moved.signs")] if event.signs and "repetition" not in event.moved_by else []
            case events.ConsultationRequested():
                why = [text(f"web.moved.{event.kind}")]
            case events.Evaluated():
                why = [text("web.moved.evaluated", score=percent(event.evaluation.overall_score))]
            case events.RequestFinished():
                why = [text("web.moved.finished", outcome=text(f"web.outcome.{event.outcome}"))]
            case _:
                return
        request = self.state.request or self.state.finished
        self._points.append(
            {
                "seq": recorded.seq,
                "at": recorded.at.isoformat(),
                **self.state.vitals.model_dump(),
                "loops": request.loops if request else 0,
                "limit": request.limit.limit if request and request.limit else None,
                "why": why,
            }
        )
        del self._points[:-_MAX_CHART_POINTS]


def rows_of(difference: str) -> list[list[Any]]:
    """Return all rows of a diff: kind and title, or kind, and number and text of both sides."""
    lines = visible(difference).expandtabs(4).rstrip("\n").split("\n") if difference.strip() else []
    return [
        [row.kind, row.title] if row.title else [row.kind, row.left, row.old, row.right, row.new]
        for row in difference_rows(lines)
    ]


def approval_payload(approval: Approval) -> Payload:
    """Return an approval's question: risk, reason, impact, alternatives, whole diff, answers (G1)."""
    offered = tuple(one for one in approval.alternatives if one.key != _EDIT)
    view = approval_view(replace(approval, alternatives=offered))
    return {
        **view.model_dump(mode="json", exclude={"expected"}),
        "kind": "approval",
        "question_hash": hash_of(approval),
        "difference": rows_of(approval.difference),
    }


def consultation_payload(asked: Consultation) -> Payload:
    """Return the situation and the choices of a consultation."""
    choices = [
        {"name": one, "label": text(f"consultation.choice.{one}"), "words": effect_of(one).needs_words}
        for one in asked.choices
    ]
    return {
        "kind": "consultation",
        "question_hash": hash_of(asked),
        "question": situation_text(asked),
        "choices": choices,
    }


def words_payload(shown: str) -> Payload:
    """Return the question of a fleet run that waits for free text. It is shown below the last reply."""
    return {"kind": "consultation", "question_hash": shown, "question": text("web.words"), "choices": []}


def evidence_payload(story: list[StoredEvent], wanted: str) -> Payload | None:
    """Return one piece of evidence in full, or None if the id is unknown."""
    describe = Describer()
    for recorded in story:
        event, described = recorded.event, describe(recorded.event)
        found: dict[str, str] = {}
        title = described.text if described else ""
        if isinstance(event, events.ActionFinished):
            found, title = {event.evidence_id: event.text}, title or event.operation
        elif isinstance(event, events.Evaluated):
            found = {one.evidence_id: one.text for one in event.checks}
            title = text("web.evidence.check")
        if wanted in found:
            return {"id": wanted, "title": visible(title), "text": visible(found[wanted])}
    return None


def _vital(name: VitalName, value: float) -> Payload:
    return {"name": name, "label": text(f"web.vital.{name}"), "value": value, "face": face_of(name, value)}


def _goal(request: Request) -> Payload:
    objective = request.objective
    evaluation = objective.evaluation
    return {
        "text": harmless(request.text),
        "outcome": text(f"web.outcome.{request.outcome}") if request.outcome else "",
        "loops": request.loops,
        "limit": request.limit.limit if request.limit else None,
        "requirements": [
            {
                "text": visible(one.requirement),
                "priority": text(f"goal.priority_{one.priority}"),
                "score": one.satisfaction,
                "evidence": list(one.evidence),
            }
            for one in objective.requirements
        ],
        "score": evaluation.overall_score if evaluation else None,
        "missing": [visible(one) for one in evaluation.missing_aspects] if evaluation else [],
        "quality": visible(evaluation.quality_assessment) if evaluation else "",
    }


def _plan(plan: Plan, *, active: bool) -> Payload:
    return {
        "name": visible(plan.name),
        "goal": visible(plan.goal),
        "risk": text(f"plan.risk_{plan.risk}"),
        "active": active,
        "steps": [
            {
                "mark": MARKS[step.status],
                "status": text(f"web.status.{step.status}"),
                "name": visible(step.name),
                "description": visible(step.description),
                "tasks": [_task(task) for task in step.task_list],
            }
            for step in plan.steps
        ],
    }


def _task(task: Task) -> Payload:
    return {
        "mark": MARKS[task.status],
        "status": text(f"web.status.{task.status}"),
        "name": visible(task_name(task)),
        "result": visible(task.result or ""),
    }


def _cost(tier: str, used: TierUsage) -> Payload:
    tokens = used.tokens
    counts = {"calls": used.calls, "input": tokens.input_tokens, "output": tokens.output_tokens}
    return {"tier": text(f"web.tier.{tier}"), **counts, "usd": used.cost_usd}
