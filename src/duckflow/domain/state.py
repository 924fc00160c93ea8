"""AgentState: everything the agent knows, as one immutable value that only the session replaces."""

from collections.abc import Mapping
from itertools import takewhile

from pydantic import Field

from duckflow.domain.decision import Action, NextStep, PromptPattern, TaskProfile
from duckflow.domain.events import ActionStarted, ApprovalAnswered, BackgroundCommand
from duckflow.domain.files.changes import ChangeSet
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ChatMessage, EffortChoice, TierName, Usage
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.limits import LoopLimit, LoopTrace
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.questions.consultation import Consultation, ConsultationKind, RulesUse
from duckflow.domain.transitions import Status, Step
from duckflow.domain.work.agents import RunningAgent
from duckflow.domain.work.objective import Support, TaskObjective
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.domain.work.plan import Plan, Task, TaskList
from duckflow.domain.work.review import ReviewReport


class Items(Frozen):
    """The five items that keep the work on track (goal to open questions), and further notes (E1)."""

    goal: str = ""
    why_now: str = ""
    constraints: tuple[str, ...] = ()
    plan_brief: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    decision_log: tuple[str, ...] = ()
    last_delta: str = ""


class TranscriptEntry(ChatMessage):
    """One message of the conversation with the model. Results of tools have an evidence id."""

    evidence_id: str | None = None
    operation: str | None = None
    path: str | None = None
    digest: str | None = None
    """SHA-256 of the file, if the entry shows all of it."""
    subject: str = ""
    """Hash of a read, fetch or command and its arguments, the same if it is repeated."""
    same_as: str = ""
    """Id of an earlier result with the same content, if this one only refers to it."""
    supports: Support = "change"
    """Claim that a tool result can prove in a verdict."""
    stale: bool = False
    """True if a later entry shows the file again, or the file has changed."""
    said: bool = False
    """True for a message of the user, False for one of the program."""


class CommandRun(Frozen):
    """A command that ran, its exit code, and how often files had changed when it ended."""

    command: str
    exit_code: int
    evidence_id: str
    revision: int = 0
    tests_failed: bool = False
    """True if it ran tests that failed although the exit code is 0."""

    @property
    def good(self) -> bool:
        """True if the exit code and the tests that it ran report success."""
        return self.exit_code == 0 and not self.tests_failed


class Request(Frozen):
    """A user's request, until it ends."""

    request_id: str
    text: str
    loops: int = 0
    progressed: int = 0
    """Number of loops that made progress."""
    failing: tuple[str, ...] = ()
    """Targets of failed actions with no later success. A refusal by the user is no failure."""
    recoveries: int = 0
    """Number of returns to planning after errors, counted since the last time that nothing was failing."""
    profile: TaskProfile | None = None
    """Kind of task, as the model last named it."""
    stops: int = 0
    """Number of times that the user stopped it."""
    outcome: RequestOutcome | None = None
    """Outcome with which the work last ended or paused; None while it continues."""
    changed: tuple[str, ...] = ()
    """Files this request wrote, moved or deleted, oldest first."""
    removed: tuple[str, ...] = ()
    """Paths of `changed` that no longer exist."""
    ran: bool = False
    attempted: bool = False
    """True if an action failed that would have changed something, or the user refused one."""
    commands: tuple[CommandRun, ...] = ()
    """Last commands that ran, oldest first."""
    limit: LoopLimit | None = None
    extended_from: int | None = None
    """Previous limit if it was extended."""
    history: tuple[LoopTrace, ...] = ()
    """Traces of the request's loops, oldest first."""
    sure: bool = True
    """True if the model was sure of itself in the last loop, or stated no confidence."""
    goal: str = ""
    """Goal at the time of the user's last message; empty before the first loop."""
    replanned: bool = False
    """True if there was a replan after the user's last message."""
    grants: int = 1
    """Number of budgets granted: each answer of the user grants another one."""
    tokens: int = 0
    cost_usd: float | None = None
    asked: tuple[ConsultationKind, ...] = ()
    """Kinds of consultations that the user was asked."""
    replies: tuple[str, ...] = ()
    """Replies that the user has read, oldest first, without the words beside actions."""
    objective: TaskObjective = Field(default_factory=lambda given: TaskObjective(request=given["text"]))
    """Requirements of the request, and how far they are met."""

    @property
    def acted(self) -> bool:
        """True if it changed a file or ran a command."""
        return self.ran or bool(self.changed)


class TierUsage(Frozen):
    """Usage of one tier (creative, fast and so on); `cost_usd` is None if no price is known."""

    calls: int = 0
    tokens: Usage = Usage.model_construct()
    cost_usd: float | None = None


class AgentState(Frozen):
    """The complete state. Only `apply` makes a new one. Its size is limited; the event log keeps all."""

    session_id: str = ""
    workspace: str = ""
    model: str = ""
    mode: Mode = "ask"
    attended: bool = True
    """True if a user is present to answer questions."""
    effort: EffortChoice = "auto"
    effort_chosen: bool = False
    """True if the user chose the effort in this session. Opening it again keeps that choice."""
    seq: int = 0
    step: Step = Step.PLANNING
    status: Status = Status.SUCCESS
    vitals: Vitals = Vitals.model_construct()
    vitals_over_time: tuple[Vitals, ...] = ()
    """Recent vitals, oldest first, for the chart."""
    confident: bool = True
    """False once the user was asked about low mood, and true again when mood has recovered."""
    praised: bool = False
    """True if the user rated the last request well."""
    prompt_tokens: int = 0
    """Tokens of the last prompt."""
    verify: str | None = None
    """Command that must succeed before a request is done; "" for none, None if the user was not asked."""
    items: Items = Items.model_construct()
    pattern: PromptPattern = "base_main"
    """Prompt pattern that the model chose for its next call."""
    reply: str = ""
    """Last reply. If it is very long, its middle is left out."""
    summaries: tuple[str, ...] = ()
    """Last requests in one line each, oldest first."""
    said: tuple[str, ...] = ()
    """Beginnings of the user's last messages, oldest first. They are kept when the transcript is cut."""
    decided: tuple[str, ...] = ()
    """Reasons of decisions in one line each, oldest first, some left out. Kept when the transcript is cut."""
    plans: tuple[Plan, ...] = ()
    active_plan_id: str | None = None
    task_list: TaskList | None = None
    """Task list that is running in the background, or that ran last."""
    consultation: Consultation | None = None
    rules_use: RulesUse = "whole"
    """The user's decision about rules that are too long."""
    transcript: tuple[TranscriptEntry, ...] = ()
    transcript_chars: int = 0
    shown_files: Mapping[str, tuple[str, ...]] = {}
    """For each path, ids of the transcript entries that show its current content."""
    files_note: str = ""
    """List of files that the model last saw."""
    evidence_count: int = 0
    request: Request | None = None
    finished: Request | None = None
    """The previous request, as it was when it ended."""
    queue: tuple[Action, ...] = ()
    """Actions of the last decision that have not run yet, in order."""
    set_aside: tuple[Action, ...] = ()
    """The queue at the time when the user said something else than yes or no. The user is asked again."""
    next_step: NextStep = "continue"
    """Next step of the last decision; "continue" once one of its actions failed."""
    closing: str = ""
    """The last decision's reply, given once all its actions have succeeded."""
    objection: str | None = None
    """The last decision's own doubt about goal or constraints, if the user is to be asked about it."""
    doubted: bool = False
    """True if the last decision doubted itself, and the model was asked to resolve the doubt."""
    running: ActionStarted | None = None
    """Action that the chat has started. If it is still set after a restart, its outcome is unknown."""
    task_running: ActionStarted | None = None
    """Action that a background task has started."""
    background_commands: tuple[BackgroundCommand, ...] = ()
    """Commands running in the background. After a crash, it is unknown how they ended."""
    agents: tuple[RunningAgent, ...] = ()
    """Agents that are at work."""
    review: ReviewReport | None = None
    """Last review of changes."""
    approval: Approval | None = None
    approved: str | None = None
    """Digest of the action that the user approved. It is used once."""
    compactions: int = 0
    """Number of times the user asked to shorten the conversation."""
    allowed: tuple[ApprovalScope, ...] = ()
    """Kinds of actions that the user always allows, until the session is opened again."""
    refused: tuple[str, ...] = ()
    """Digests of calls that the user refused since their last message, and of the effects of these calls."""
    refused_earlier: bool = False
    """True if the user has said something else since their no, and may want a refused draft after all."""
    reminded: bool = False
    """True if the model has proposed a refused draft again, and was reminded of the user's no."""
    asks_instead: bool = False
    """True if the user must say what to do instead, because of a no without a reason or a repeated draft."""
    unseen: tuple[str, ...] = ()
    """Files changed since the user last wrote or approved something."""
    list_granted: bool = False
    """True if the user approved an action of the current task list after seeing how many files it changes."""
    change_sets: tuple[ChangeSet, ...] = ()
    """File changes, oldest first, and whether they were undone."""
    task_answer: ApprovalAnswered | None = None
    """Last answer to a question of a background task, with the digest of the approved call. Used once."""
    usage: Mapping[TierName, TierUsage] = {}

    @property
    def active_plan(self) -> Plan | None:
        """The active plan, if any."""
        return next((plan for plan in self.plans if plan.plan_id == self.active_plan_id), None)

    @property
    def question(self) -> Approval | Consultation | None:
        """The open question to the user."""
        return self.approval or self.consultation

    @property
    def only_talks(self) -> bool:
        """True if the user stopped the request and has since been answered, without any change."""
        if not self.attended or self.request is None or not self.request.objective.stopped:
            return False
        since = [*takewhile(lambda entry: not entry.said, reversed(self.transcript))]
        changed = self.request.objective.revision != self.request.objective.said_at
        return not any(
            entry.evidence_id and entry.supports == "change" and (changed or entry.operation != "shell.run")
            for entry in since
        )

    @property
    def background_runs(self) -> bool:
        """True while a task list is running."""
        return self.task_list is not None and not self.task_list.ended


def purpose_of(state: AgentState, task: Task) -> str:
    """Return the purpose of a task: the step of its plan, or the request during which it runs."""
    for step in (step for plan in state.plans for step in plan.steps):
        if any(one.task_id == task.task_id for one in step.task_list):
            return f"{step.name}: {step.description}"
    return state.request.text if state.request else task.operation


def new_state(session_id: str = "") -> AgentState:
    """Return the state of a session without events, without building the validator of the whole state."""
    return AgentState.model_construct(session_id=session_id)
