"""Data about a session for the web page, event by event: in the user's language, never markup."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duckflow.domain import events
from duckflow.domain.commands import hash_of
from duckflow.domain.events import StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.model import Picture
from duckflow.domain.pacing.vitals import VITALS, VitalName, face_of
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation, effect_of
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import rewind
from duckflow.domain.session_client import works_after
from duckflow.domain.state import Request, TierUsage, new_state
from duckflow.domain.text import percent
from duckflow.domain.work.plan import Plan, Task, WorkStatus
from duckflow.i18n.catalogue import text
from duckflow.i18n.plans import step_title
from duckflow.ui.output.diff import difference_rows
from duckflow.ui.output.escaping import harmless, on_one_line, visible
from duckflow.ui.views.agents import running_line
from duckflow.ui.views.approval import approval_view
from duckflow.ui.views.events import Describer, situation_text
from duckflow.ui.views.live.progress import MARKS, task_name
from duckflow.ui.views.live.status_bar import short_model
from duckflow.ui.web.markup import markdown_nodes

Payload = dict[str, Any]

_EDIT = "approval.instead.edit"
"""Alternative that the page does not offer, because there an answer can only apply to the change shown."""
_MAX_CHART_POINTS = 500
_REMARK = lazy_regex(r"\s*[(（][^()（）]*[)）]$")
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
        self._evidence: dict[str, str] = {}
        """Words for each piece of evidence, by id."""

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
        event = recorded.event
        if isinstance(event, events.SessionStarted) and event.resumed:
            return None  # the page itself opens sessions again, so this says nothing to its user
        finished = event if isinstance(event, events.ActionFinished) else None
        said = event if isinstance(event, events.UserMessage) else None
        is_notice = isinstance(event, events.ErrorReported) and event.notice
        if finished:
            self._evidence[finished.evidence_id] = harmless(described.text.removeprefix("✓ "))
        return {
            "seq": recorded.seq,
            "at": recorded.at.isoformat(),
            "kind": "note" if is_notice or described.kind == "setting" else described.kind,
            "tone": "warning" if is_notice else described.tone,
            "text": harmless(described.text),
            "nodes": markdown_nodes(described.text) if described.kind == "reply" else None,
            "asks": _asked_hash(event),
            "path": harmless(finished.path or "") if finished and finished.outcome == "ok" else "",
            "pictures": [one.digest for one in said.pictures if _is_pasted(one)] if said else [],
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
            "goal": _goal(request, self._evidence) if request else None,
            "agents": [harmless(running_line(one)) for one in state.agents],
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
            shown = approval_payload(asked)
            said = on_one_line(self.state.reply)
            repeats = shown["intent"] and said.startswith(shown["intent"].rstrip("… "))
            return {**shown, "intent": ""} if repeats else shown  # the reply stands above the question
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


def live_payload(reply: str, output: str, wait_s: int, thinking: str) -> Payload:
    """Return the text that is being produced: the reply as nodes, because it is Markdown."""
    return {
        "reply": markdown_nodes(reply),
        "output": harmless(output),
        "wait_s": wait_s,
        "thinking": harmless(thinking),
    }


def _asked_hash(event: events.Event) -> str:
    """Return the hash of the question that an event asks, so that the page shows it only once."""
    if isinstance(event, events.ApprovalRequested):
        return hash_of(event.approval)
    return hash_of(event.consultation) if isinstance(event, events.ConsultationRequested) else ""


def _is_pasted(picture: Picture) -> bool:
    return picture.path.startswith("picture-")


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
        **view.model_dump(mode="json"),
        "kind": "approval",
        "question_hash": hash_of(approval),
        "difference": rows_of(approval.difference),
    }


def consultation_payload(asked: Consultation) -> Payload:
    """Return the situation and the choices of a consultation."""
    choices = [
        {"name": one, "label": _choice_label(one), "words": effect_of(one).needs_words}
        for one in asked.choices
    ]
    return {
        "kind": "consultation",
        "question_hash": hash_of(asked),
        "question": situation_text(asked),
        "choices": choices,
    }


def _choice_label(choice: str) -> str:
    """Return a choice without the remark that words follow its number, which the page does not have."""
    label = text(f"consultation.choice.{choice}")
    return _REMARK.sub("", label) if effect_of(choice).needs_words else label


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


def _goal(request: Request, evidence: Mapping[str, str]) -> Payload:
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
                "evidence": [
                    {"id": known, "words": evidence.get(known) or text("web.evidence.check")}
                    for known in one.evidence
                ],
            }
            for one in objective.requirements
        ],
        "score": evaluation.overall_score if evaluation else None,
        "missing": [visible(one) for one in evaluation.missing_aspects] if evaluation else [],
        "quality": visible(evaluation.quality_assessment) if evaluation else "",
    }


def _plan(plan: Plan, *, active: bool) -> Payload:
    done = sum(1 for step in plan.steps if step.status == "completed")
    risk = text(f"plan.risk_{plan.risk}")
    return {
        "name": visible(plan.name),
        "goal": visible(plan.goal),
        "words": text("web.plan", done=done, count=len(plan.steps), risk=risk),
        "criteria": [visible(one) for one in plan.success_criteria],
        "active": active,
        "steps": [
            {
                **_marked(step.status),
                "name": visible(step_title(plan, step)),
                "description": visible(step.description),
                "tasks": [_task(task) for task in step.task_list],
            }
            for step in plan.steps
        ],
    }


def _task(task: Task) -> Payload:
    return {
        **_marked(task.status),
        "name": visible(task_name(task)),
    }


def _marked(status: WorkStatus) -> Payload:
    return {"mark": MARKS[status], "is": status, "status": text(f"web.status.{status}")}


def _cost(tier: str, used: TierUsage) -> Payload:
    tokens = used.tokens
    counts = {"calls": used.calls, "input": tokens.input_tokens, "output": tokens.output_tokens}
    return {"tier": text(f"web.tier.{tier}"), **counts, "usd": used.cost_usd}
