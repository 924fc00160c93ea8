"""All that can happen, as a frozen union. An event is stored before anyone sees it.

The names in `type` are the ones `duckflow run --json` prints (SPEC N); keep them stable.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from duckflow.domain.commands import ChooseWay
from duckflow.domain.consultation import Consultation, ConsultationKind
from duckflow.domain.decision import Action, Decision
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ChatMessage, TierName, Usage
from duckflow.domain.plan import Plan, TaskList
from duckflow.domain.state import Approval, Mode, RequestOutcome
from duckflow.domain.transitions import Step

ActionOutcome = Literal["ok", "failed", "refused", "unknown"]


class SessionStarted(Frozen):
    """A session was opened, or opened again: what it works on, with which model, and why that one.

    `model_reason` is a catalogue key, `model_values` fill its slots.
    """

    type: Literal["session_started"] = "session_started"
    session_id: str
    workspace: str
    model: str
    model_reason: str
    model_values: dict[str, str] = Field(default_factory=dict[str, str])
    mode: Mode
    version: str
    resumed: bool = False


class UserMessage(Frozen):
    """The user said something. `request_id` is new, or that of the request it goes on with.

    `note` is what the program adds for the model: the files there are, where that changed.
    """

    type: Literal["user_message"] = "user_message"
    request_id: str
    text: str
    note: str = ""


class DecisionMade(Frozen):
    """The model decided. `exchange` is what it said, word for word, for the prompts to come."""

    type: Literal["decision"] = "decision"
    loop: int
    decision: Decision
    exchange: tuple[ChatMessage, ...]


class Transition(Frozen):
    """The step changed."""

    type: Literal["transition"] = "transition"
    start: Step
    end: Step
    by: Literal["model", "program"]
    reason: str
    recovery: bool = False
    """Whether an error brought the work back to planning."""


class TransitionRefused(Frozen):
    """The model wanted a step that may not follow; nothing changed."""

    type: Literal["transition_refused"] = "transition_refused"
    start: Step
    end: Step
    reason: str


class ActionStarted(Frozen):
    """An action is about to take effect."""

    type: Literal["action_started"] = "action_started"
    action_id: str
    action: Action
    task_id: str | None = None


class ActionFinished(Frozen):
    """How an action ended, what it returned, and what of the list does not run because of it."""

    type: Literal["action_finished"] = "action_finished"
    action_id: str
    operation: str
    outcome: ActionOutcome
    text: str
    path: str | None = None
    changed: tuple[str, ...] = ()
    evidence_id: str
    digest: str | None = None
    not_run: tuple[str, ...] = ()
    then: tuple[Action, ...] = ()
    """What the program wants done next, before the rest of the list."""
    task_id: str | None = None


class ApprovalRequested(Frozen):
    """A change waits for the user's answer."""

    type: Literal["approval_requested"] = "approval_requested"
    approval: Approval


class ApprovalAnswered(Frozen):
    """The user's answer; a reason for a no goes to the model."""

    type: Literal["approval_answered"] = "approval_answered"
    approval_id: str
    yes: bool
    reason: str = ""


class ConsultationRequested(Frozen):
    """The program asks the user how to go on."""

    type: Literal["consultation_requested"] = "consultation_requested"
    kind: ConsultationKind
    consultation: Consultation


class ConsultationAnswered(Frozen):
    """How the user wants to go on."""

    type: Literal["consultation_answered"] = "consultation_answered"
    consultation_id: str
    answer: ChooseWay


class PlanChanged(Frozen):
    """A plan was made, changed or removed. `change` says what happened, in a word."""

    type: Literal["plan_changed"] = "plan_changed"
    plan: Plan
    change: Literal["proposed", "approved", "revised", "step", "tasks", "deleted"]


class TaskListStarted(Frozen):
    """Tasks were handed to the background."""

    type: Literal["task_list_started"] = "task_list_started"
    task_list: TaskList


class TaskFinished(Frozen):
    """How one background task ended."""

    type: Literal["task_finished"] = "task_finished"
    list_id: str
    task_id: str
    operation: str
    status: Literal["completed", "failed"]
    result: str


class TaskReported(Frozen):
    """A task list has ended: what came of it, in words."""

    type: Literal["task_report"] = "task_report"
    list_id: str
    status: Literal["success", "partial", "failed", "cancelled"]
    completed: int
    failed: int
    pending: int
    summary: str
    by: Literal["model", "program"] = "program"
    """Whose words the summary is in."""
    failures: tuple[str, ...] = ()
    next_action: str = ""


class Reply(Frozen):
    """What the user reads."""

    type: Literal["reply"] = "reply"
    text: str


class UsageReported(Frozen):
    """What one model call used. `cost_usd` is None where no price is known."""

    type: Literal["usage"] = "usage"
    tier: TierName
    model: str
    output: str
    tokens: Usage
    cost_usd: float | None = None


class ErrorReported(Frozen):
    """Something went wrong that the user should know: a catalogue key and its values."""

    type: Literal["error"] = "error"
    key: str
    values: dict[str, JsonValue] = Field(default_factory=dict)


class RequestFinished(Frozen):
    """The work on a request ended, for good or until the user answers."""

    type: Literal["request_finished"] = "request_finished"
    request_id: str
    outcome: RequestOutcome
    exit_code: int


Event = Annotated[
    SessionStarted
    | UserMessage
    | DecisionMade
    | Transition
    | TransitionRefused
    | ActionStarted
    | ActionFinished
    | ApprovalRequested
    | ApprovalAnswered
    | ConsultationRequested
    | ConsultationAnswered
    | PlanChanged
    | TaskListStarted
    | TaskFinished
    | TaskReported
    | Reply
    | UsageReported
    | ErrorReported
    | RequestFinished,
    Field(discriminator="type"),
]


class Recorded(Frozen):
    """An event with its place in the session and its time."""

    seq: int
    at: datetime
    event: Event


class ReplyPiece(Frozen):
    """Characters of a reply while it is being written. Not an event: the reply itself follows as one."""

    text: str


class ReplyVoid(Frozen):
    """The pieces shown so far are void: the model is asked again."""


class Waiting(Frozen):
    """The provider asked for patience: the call is repeated after `wait_s`."""

    reason: str
    wait_s: float


class OutputPiece(Frozen):
    """Output of a running command as it comes. Not an event: its result follows as one."""

    text: str


Glimpse = ReplyPiece | ReplyVoid | Waiting | OutputPiece
