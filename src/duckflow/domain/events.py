"""All events. `duckflow run --json` prints them under the names in `type` (N), so keep these stable."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field

from duckflow.domain.decision import Action, Decision, TaskProfile
from duckflow.domain.files.changes import FileChange, LeftFile, ToolEffect
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine
from duckflow.domain.model import ChatMessage, EffortChoice, Picture
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.limits import LoopLimit, LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.questions.consultation import ChooseWay, Consultation, ConsultationKind
from duckflow.domain.session_events import (
    AgentEnded,
    AgentMoved,
    AgentStarted,
    Compacted,
    EffortChanged,
    ErrorReported,
    HookRan,
    HostContacted,
    MemoryKept,
    MemoryRecalled,
    ModeChanged,
    ModelChanged,
    PermissionChanged,
    RequestRated,
    ReviewFinished,
    SessionTitled,
    UsageReported,
)
from duckflow.domain.transitions import Step
from duckflow.domain.work.checks import CheckResult
from duckflow.domain.work.objective import Evidence, ExecutionPlan, RequirementItem, SatisfactionEvaluation
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.domain.work.plan import Plan, TaskList

ActionOutcome = Literal["ok", "failed", "refused", "unknown"]

Declined = Literal["now", "before", "outdated", "later"]
"""The user's no to an action: to this question, or earlier to the same draft, which is not shown again.
"later": the user stopped the work at the question, so the action may be proposed again.
An outdated action did not run because the user said something else before it began."""


class SessionStarted(Frozen):
    """A session was opened or resumed: its workspace, its model, and why that model was chosen."""

    type: Literal["session_started"] = "session_started"
    session_id: str
    workspace: str
    model: str
    model_reason: str
    """Catalogue key of the reason; `model_values` fill its slots."""
    model_values: dict[str, str] = Field(default_factory=dict[str, str])
    mode: Mode
    version: str
    resumed: bool = False
    title: str = ""
    """Title of a resumed session."""
    last_used: str = ""
    """Time at which a resumed session was last used, in ISO format."""
    attended: bool = True
    """True if a user is present to answer questions."""
    effort: EffortChoice = "auto"


class UserMessage(Frozen):
    """The user said something. `request_id` is new, or that of the request the message continues."""

    type: Literal["user_message"] = "user_message"
    request_id: str
    text: str
    note: str = ""
    """List of files for the model, if it changed."""
    added: str = ""
    """Text that hooks add for the model."""
    pictures: tuple[Picture, ...] = ()
    resumes: bool = False
    """True if it only asks to continue, so the request stays as it is."""


class DecisionMade(Frozen):
    """The model decided. `exchange` is the verbatim exchange, for later prompts."""

    type: Literal["decision"] = "decision"
    loop: int
    decision: Decision
    exchange: tuple[ChatMessage, ...]
    held: tuple[int, ...] = ()
    """Positions of the actions that do not run because the model itself doubts them (A5)."""
    closing: str = ""
    """Reply that ends the turn if all actions succeed."""


class Transition(Frozen):
    """The work moved to another step."""

    type: Literal["transition"] = "transition"
    start: Step
    end: Step
    by: Literal["model", "program"]
    reason: str
    recovery: bool = False
    """True if an error sent the work back to planning."""


class TransitionRefused(Frozen):
    """The model asked for a step that may not follow; nothing changed."""

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
    """Kind of effect; after a crash it says where to look."""


class ActionFinished(Frozen):
    """An action ended: its outcome, its result, and the queued actions that do not run because of it."""

    type: Literal["action_finished"] = "action_finished"
    action_id: str
    operation: str
    outcome: ActionOutcome
    text: str
    path: str | None = None
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    """Paths of `changed` that no longer exist."""
    changes: tuple[FileChange, ...] = ()
    exact: bool = False
    """For a command: true if `changes` is everything that it did."""
    evidence_id: str
    digest: str | None = None
    same_as: str = ""
    """Id of an earlier result with the same content, if the text only refers to it."""
    exit_code: int | None = None
    tests_failed: str = ""
    """Line in which a test runner says that tests failed, if the exit code hides it."""
    frame: tuple[int, int] = (1, 0)
    """Number of lines of `text` before and after a command's own output. They are for the model."""
    reason: TextLine | None = None
    """Reason for the user why it failed or was refused."""
    told: tuple[TextLine, ...] = ()
    """Lines for the user about what it did."""
    pictures: tuple[Picture, ...] = ()
    """Pictures in the result, whose bytes are in the database of kept files."""
    by_user: bool = False
    """True if the user ran it: the whole output is shown."""
    not_run: tuple[str, ...] = ()
    not_run_at: tuple[int, ...] | None = None
    """Positions of these actions in the queue; None means the whole queue."""
    then: tuple[Action, ...] = ()
    """Actions the program inserts before the rest of the queue."""
    declined: Declined | None = None
    """Set if the user refused the action; None if a rule or a hook did."""
    task_id: str | None = None

    @property
    def unchanged(self) -> bool:
        """True if it wrote a file that already had this content."""
        writes = self.operation in ("file_ops.write_file", "file_ops.edit_file", "file_ops.edit_cell")
        return writes and self.outcome == "ok" and not self.changed


class ApprovalRequested(Frozen):
    """A change waits for the user's answer."""

    type: Literal["approval_requested"] = "approval_requested"
    approval: Approval


class ApprovalAnswered(Frozen):
    """The user answered an approval. The reason for a refusal goes to the model."""

    type: Literal["approval_answered"] = "approval_answered"
    approval_id: str
    yes: bool
    reason: str = ""
    allowed: ApprovalScope | None = None
    """Kind of action that is not asked about again in this session."""
    edited: Action | None = None
    digest: str | None = None
    """Digest that binds the approval to the edited action; empty if the edit must be shown first."""
    stopped: bool = False
    """True if the user stopped the work instead of answering, so that the same draft may be shown again."""


class ConsultationRequested(Frozen):
    """The program asked the user how to proceed."""

    type: Literal["consultation_requested"] = "consultation_requested"
    kind: ConsultationKind
    consultation: Consultation


class ConsultationAnswered(Frozen):
    """The user answered a consultation."""

    type: Literal["consultation_answered"] = "consultation_answered"
    consultation_id: str
    answer: ChooseWay
    told: str = ""
    """Message for the model: the user's wish and words, and any findings about them."""


class ActionQueued(Frozen):
    """The program inserted actions to run next, through the same gate as any other action."""

    type: Literal["action_queued"] = "action_queued"
    actions: tuple[Action, ...]


class Undone(Frozen):
    """Changes were undone or, with `redo`, an undo was. `takes_back` lists the action ids (G8)."""

    type: Literal["undone"] = "undone"
    undo_id: str
    takes_back: tuple[str, ...]
    changes: tuple[FileChange, ...] = ()
    """Changes this undo made to files, so that it can be undone too."""
    left: tuple[LeftFile, ...] = ()
    redo: bool = False
    commands: tuple[str, ...] = ()
    """Commands in the undone actions; some of their effects may remain."""
    remaining: int = 0
    """Earlier actions whose changes can still be undone."""
    after_stop: int = 0
    """If the user had stopped the undone request in between: number of actions after the last stop."""
    action_id: str = ""
    """Action with which the model did it at the user's wish; empty if the user did it with a command."""


class Rewound(Frozen):
    """The user returned to an earlier message (L8): the conversation, the files, or both."""

    type: Literal["rewound"] = "rewound"
    to: int
    text: str = ""
    conversation: bool = True
    files: bool = True


class BackgroundCommand(Frozen):
    """A command that runs in the background."""

    id: str
    command: str


class CommandStarted(Frozen):
    """A command was left running in the background (G11)."""

    type: Literal["command_started"] = "command_started"
    command: BackgroundCommand


class CommandEnded(Frozen):
    """A background command ended: on its own, stopped, with the request, or in an unknown way."""

    type: Literal["command_ended"] = "command_ended"
    command: BackgroundCommand
    how: Literal["ended", "stopped", "with_request", "cancelled", "unknown"]
    exit_code: int | None = None


class Recovered(Frozen):
    """Actions found after a crash: finished, not done, unknown, and not yet started (C5)."""

    type: Literal["recovered"] = "recovered"
    finished: tuple[str, ...] = ()
    not_done: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()


class LimitSet(Frozen):
    """The loop limit was set or extended; `limit` shows how it was computed (I2, I7)."""

    type: Literal["limit_set"] = "limit_set"
    limit: LoopLimit
    extended_from: int | None = None


class VitalsChanged(Frozen):
    """The duck's vitals changed; `cause` says why (H1)."""

    type: Literal["vitals"] = "vitals"
    vitals: Vitals
    cause: Literal["request", "loop", "extension", "replan", "answer"]
    loop: int = 0
    signs: tuple[str, ...] = ()
    moved_by: tuple[FocusEvent, ...] = ()
    confident: bool = True
    prompt_tokens: int = 0
    trace: LoopTrace | None = None


class RequirementsFound(Frozen):
    """The request was divided into requirements that can be checked (J1)."""

    type: Literal["requirements"] = "requirements"
    requirements: tuple[RequirementItem, ...]
    by: Literal["model", "program"] = "model"
    profile: TaskProfile | None = None
    """Kind of task, used if no decision named one. Small talk has no requirements."""
    told: str = ""
    """Message that gives the model the requirements; empty if it named them itself."""
    replaces: bool = False
    """True if the user now wants something else instead of the earlier request."""
    failures_accepted: bool = False
    """True if the user said that tests may fail for now."""


class Evaluated(Frozen):
    """The work was evaluated against the evidence (J2). `checks` are the program's own observations."""

    type: Literal["evaluation"] = "evaluation"
    iteration: int
    evaluation: SatisfactionEvaluation
    checks: tuple[Evidence, ...] = ()
    results: tuple[CheckResult, ...] = ()
    """Checks that were run; each is also among the last of `checks`."""


class AttemptPlanned(Frozen):
    """The result was not satisfactory, and the next attempt was planned (J4, J9)."""

    type: Literal["attempt_planned"] = "attempt_planned"
    number: int
    plan: ExecutionPlan
    learned: tuple[str, ...] = ()
    told: str
    """Message for the model: what is known of earlier attempts, and the plan."""


class VerifySet(Frozen):
    """The command that requests must pass was set; empty for none."""

    type: Literal["verify_set"] = "verify_set"
    command: str


class PlanChanged(Frozen):
    """A plan was created, changed or deleted; `change` says which."""

    type: Literal["plan_changed"] = "plan_changed"
    plan: Plan
    change: Literal["proposed", "approved", "revised", "step", "tasks", "deleted"]
    asks: bool = False
    """True if the user is asked to approve the plan next. The question shows it."""


class TaskListStarted(Frozen):
    """Tasks were handed to the background."""

    type: Literal["task_list_started"] = "task_list_started"
    task_list: TaskList


class TaskFinished(Frozen):
    """A background task ended."""

    type: Literal["task_finished"] = "task_finished"
    list_id: str
    task_id: str
    operation: str
    status: Literal["completed", "failed"]
    result: str


class TaskReported(Frozen):
    """A task list ended: its results and a summary."""

    type: Literal["task_report"] = "task_report"
    list_id: str
    status: Literal["success", "partial", "failed", "cancelled"]
    completed: int
    failed: int
    pending: int
    summary: str
    by: Literal["model", "program"] = "program"
    failures: tuple[str, ...] = ()
    next_action: str = ""


class Reply(Frozen):
    """The reply that the user reads."""

    type: Literal["reply"] = "reply"
    text: str


class RequestFinished(Frozen):
    """The work on a request ended or paused until the user answers."""

    type: Literal["request_finished"] = "request_finished"
    request_id: str
    outcome: RequestOutcome
    exit_code: int
    profile: TaskProfile | None = None
    loops: int = 0
    limit: int | None = None
    attempts: int = 0
    satisfaction: float | None = None
    """Score of the last evaluation; None if there was none."""


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
    | Compacted
    | PermissionChanged
    | ModelChanged
    | EffortChanged
    | SessionTitled
    | MemoryKept
    | MemoryRecalled
    | HookRan
    | AgentStarted
    | AgentMoved
    | AgentEnded
    | ReviewFinished
    | HostContacted
    | ErrorReported
    | RequestFinished,
    Field(discriminator="type"),
]


class StoredEvent(Frozen):
    """A stored event with its number in the session and its time."""

    seq: int
    at: datetime
    event: Event
