"""All that can happen, as a frozen union. An event is stored before anyone sees it.

The names in `type` are the ones `duckflow run --json` prints (SPEC N); keep them stable.
"""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue

from duckflow.domain.decision import Action, Decision, TaskProfile
from duckflow.domain.errors import UserError
from duckflow.domain.extensions import HookEvent, HookOutcome
from duckflow.domain.files.changes import FileChange, LeftFile, ToolEffect
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ChatMessage, EffortChoice, Picture, TierName, Usage
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.questions.consultation import ChooseWay, Consultation, ConsultationKind
from duckflow.domain.transitions import Step
from duckflow.domain.work.memory import MemoryKind
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.domain.work.work_events import (
    AttemptPlanned,
    Evaluated,
    LimitSet,
    PlanChanged,
    RequestRated,
    RequirementsFound,
    TaskFinished,
    TaskListStarted,
    TaskReported,
    VerifySet,
    VitalsChanged,
)

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
    attended: bool = True
    """Whether a user is there who can be asked."""
    effort: EffortChoice = "auto"
    """How much models are asked to think."""


class UserMessage(Frozen):
    """The user said something. `request_id` is new, or that of the request it goes on with.

    `note` is what the program adds for the model: the files there are, where that changed; `added` is what
    hooks add; `pictures` are mentioned in it.
    """

    type: Literal["user_message"] = "user_message"
    request_id: str
    text: str
    note: str = ""
    added: str = ""
    pictures: tuple[Picture, ...] = ()


class DecisionMade(Frozen):
    """The model decided. `exchange` is what it said, word for word, for the prompts to come."""

    type: Literal["decision"] = "decision"
    loop: int
    decision: Decision
    exchange: tuple[ChatMessage, ...]
    held: tuple[int, ...] = ()
    """Places of the actions that do not run, because the model itself doubts them (SPEC A5)."""
    closing: str = ""
    """The reply that ends the turn if all actions succeed."""


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
    effect: ToolEffect | None = None
    """What kind of thing it does; after a crash that says where to look."""


class ActionFinished(Frozen):
    """How an action ended, what it returned, and what of the list does not run because of it."""

    type: Literal["action_finished"] = "action_finished"
    action_id: str
    operation: str
    outcome: ActionOutcome
    text: str
    path: str | None = None
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Those of them that are not there any more."""
    changes: tuple[FileChange, ...] = ()
    """What happened to files, as it can be taken back."""
    exact: bool = False
    """Of a command: whether `changes` is all that it did."""
    evidence_id: str
    digest: str | None = None
    same_as: str = ""
    """Id of the result that shows the same, where the text only points to it."""
    exit_code: int | None = None
    """Of a command that ran to its end, or was stopped."""
    not_run: tuple[str, ...] = ()
    not_run_at: tuple[int, ...] | None = None
    """Their places in the queue; None stands for all of it."""
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
    allowed: ApprovalScope | None = None
    """What is not asked about again in this session."""
    edited: Action | None = None
    """What the user made of the action, and said yes to."""
    digest: str | None = None
    """Binds a yes to the edited action; empty where that one must be shown first."""


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
    told: str = ""
    """What the model is told of it: the wish, the user's words, and what was found out for it."""


class ActionQueued(Frozen):
    """The program wants something done next, through the gate like any other action."""

    type: Literal["action_queued"] = "action_queued"
    actions: tuple[Action, ...]


class Undone(Frozen):
    """The user took changes back; with `redo`, an undo itself. `takes_back` names the actions (SPEC G8)."""

    type: Literal["undone"] = "undone"
    undo_id: str
    takes_back: tuple[str, ...]
    changes: tuple[FileChange, ...] = ()
    """What this did to files, so that it can be taken back too."""
    left: tuple[LeftFile, ...] = ()
    redo: bool = False


class Rewound(Frozen):
    """The user went back to before a message (SPEC L8): its place, and whether talk, files or both went back.

    What lies between is kept, and is no part of the conversation any more.
    """

    type: Literal["rewound"] = "rewound"
    to: int
    text: str = ""
    conversation: bool = True
    files: bool = True


class BackgroundCommand(Frozen):
    """A command that goes on while others run."""

    id: str
    command: str


class CommandStarted(Frozen):
    """A command goes on in the background (SPEC G11)."""

    type: Literal["command_started"] = "command_started"
    command: BackgroundCommand


class CommandEnded(Frozen):
    """A command of the background has ended: by itself, stopped, with the request, or nobody knows how."""

    type: Literal["command_ended"] = "command_ended"
    command: BackgroundCommand
    how: Literal["ended", "stopped", "with_request", "cancelled", "unknown"]
    exit_code: int | None = None


class Recovered(Frozen):
    """What was found after a crash: done, not done, unknown, and what was still to come (SPEC C5)."""

    type: Literal["recovered"] = "recovered"
    finished: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()


class Reply(Frozen):
    """What the user reads."""

    type: Literal["reply"] = "reply"
    text: str


class UsageReported(Frozen):
    """What one model call used. `cost_usd` is None if no price is known."""

    type: Literal["usage"] = "usage"
    tier: TierName
    model: str
    output: str
    tokens: Usage
    cost_usd: float | None = None


class ModeChanged(Frozen):
    """The user wants to be asked more, or less, from now on."""

    type: Literal["mode_changed"] = "mode_changed"
    mode: Mode


class ModelChanged(Frozen):
    """The user chose another model for the rest of the session."""

    type: Literal["model_changed"] = "model_changed"
    model: str


class EffortChanged(Frozen):
    """The user chose how much models think for the rest of the session."""

    type: Literal["effort_changed"] = "effort_changed"
    effort: EffortChoice


class SessionTitled(Frozen):
    """A few words for the session, for lists of sessions."""

    type: Literal["session_titled"] = "session_titled"
    title: str


class MemoryKept(Frozen):
    """Something is to be known in later sessions: in one folder, or everywhere."""

    type: Literal["memory_kept"] = "memory_kept"
    kind: MemoryKind
    text: str
    workspace: str = ""
    """The folder it counts in; empty for everywhere."""


class MemoryRecalled(Frozen):
    """What was kept in earlier sessions and speaks of the request, the nearest first."""

    type: Literal["memory_recalled"] = "memory_recalled"
    texts: tuple[str, ...]


class HookRan(Frozen):
    """A hook ran: a command of the user's, or of a project they trust (SPEC L5)."""

    type: Literal["hook"] = "hook"
    hook: HookEvent
    command: str
    outcome: HookOutcome
    reason: str = ""
    tool: str = ""
    """The name it knows the action by, if it was about one."""
    told: str = ""
    """What the model is told of it, if that is not said with the action."""


class ErrorReported(Frozen):
    """Something went wrong that the user should know: a catalogue key and its values."""

    type: Literal["error"] = "error"
    key: str
    values: dict[str, JsonValue] = Field(default_factory=dict)
    notice: bool = False
    """Whether nothing went wrong, and it is only good to know."""


def report_of(error: UserError) -> ErrorReported:
    """An error as it is written down."""
    return ErrorReported(key=error.key, values={name: str(value) for name, value in error.values.items()})


class RequestFinished(Frozen):
    """The work on a request ended, for good or until the user answers."""

    type: Literal["request_finished"] = "request_finished"
    request_id: str
    outcome: RequestOutcome
    exit_code: int
    profile: TaskProfile | None = None
    loops: int = 0
    limit: int | None = None
    attempts: int = 0
    """Evaluations it took."""
    satisfaction: float | None = None
    """How far it was met at the last look; None if nobody had to look."""


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
    | LimitSet
    | VitalsChanged
    | RequirementsFound
    | Evaluated
    | AttemptPlanned
    | ActionQueued
    | VerifySet
    | RequestRated
    | Undone
    | Rewound
    | CommandStarted
    | CommandEnded
    | Recovered
    | PlanChanged
    | TaskListStarted
    | TaskFinished
    | TaskReported
    | Reply
    | UsageReported
    | ModeChanged
    | ModelChanged
    | EffortChanged
    | SessionTitled
    | MemoryKept
    | MemoryRecalled
    | HookRan
    | ErrorReported
    | RequestFinished,
    Field(discriminator="type"),
]


class Recorded(Frozen):
    """An event with its place in the session and its time."""

    seq: int
    at: datetime
    event: Event


_WORKS = (UserMessage, ApprovalAnswered, ConsultationAnswered, DecisionMade, ActionStarted)
_RESTS = (RequestFinished, SessionStarted)


def works_after(event: Event, before: bool) -> bool:  # noqa: FBT001 - a state and the next one
    """True if work goes on after an event; most events leave that as it was `before`."""
    return isinstance(event, _WORKS) if isinstance(event, _WORKS + _RESTS) else before
