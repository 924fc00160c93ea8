"""AgentState: everything the agent knows, in one frozen value with one owner (the session)."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from duckflow.domain.decision import Action, NextStep, PromptPattern, TaskProfile
from duckflow.domain.events import ActionStarted, ApprovalAnswered, BackgroundCommand
from duckflow.domain.files.changes import ChangeSet
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice, Picture, Thought, TierName, ToolCall, Usage
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.limits import LoopLimit, LoopTrace
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.questions.approval import Approval, ApprovalScope
from duckflow.domain.questions.consultation import Consultation, ConsultationKind, RulesUse
from duckflow.domain.transitions import Status, Step
from duckflow.domain.work.objective import Support, TaskObjective
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.domain.work.plan import Plan, Task, TaskList


class Items(Frozen):
    """The five items that hold the thread of the work, and what goes with them (SPEC E1)."""

    goal: str = ""
    why_now: str = ""
    constraints: tuple[str, ...] = ()
    plan_brief: tuple[str, ...] = ()
    open_questions: tuple[str, ...] = ()
    context_refs: tuple[str, ...] = ()
    decision_log: tuple[str, ...] = ()
    pending_gate: bool = False
    last_delta: str = ""


class TranscriptEntry(Frozen):
    """One message of the conversation with the model. Tool results carry their evidence id."""

    role: Literal["user", "assistant"]
    text: str
    evidence_id: str | None = None
    operation: str | None = None
    path: str | None = None
    digest: str | None = None
    """Of the file it shows, where it shows all of one."""
    subject: str = ""
    """Digest of the operation and its arguments, for looks: a later look at the same thing has the same."""
    same_as: str = ""
    """Id of the result that shows the same, where this one only points to it."""
    supports: Support = "change"
    """What a tool result can show in a verdict."""
    stale: bool = False
    """Whether a later entry shows the file again, or the file has changed since."""
    said: bool = False
    """Whether it is the user's own message, not what the program tells."""
    pictures: tuple[Picture, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    """Native tool calls of an answer."""
    thoughts: tuple[Thought, ...] = ()
    """Thinking that came with an answer, to be handed back to the model that thought it."""
    result_of: str = ""
    """Id of the native call whose result this is."""
    failed: bool = False
    """Whether the call failed or was refused."""


class CommandRun(Frozen):
    """A command that ran, how it ended, and how often files had changed by its end."""

    command: str
    exit_code: int
    evidence_id: str
    revision: int = 0


class Request(Frozen):
    """What the user asked, until it ends."""

    request_id: str
    text: str
    loops: int = 0
    progressed: int = 0
    """How many of them got on."""
    failing: tuple[str, ...] = ()
    """What a tool last failed on and none has succeeded on since; the user's no is not a failure."""
    recoveries: int = 0
    """How often an error sent the work back to planning since all was well."""
    profile: TaskProfile | None = None
    """What kind of task the model last took it for."""
    outcome: RequestOutcome | None = None
    """How the work on it last ended; None while it goes on."""
    changed: tuple[str, ...] = ()
    """Files this request wrote, moved or deleted, oldest first."""
    removed: tuple[str, ...] = ()
    """Those of them that are not there any more."""
    ran: bool = False
    """Whether a command was run for it."""
    commands: tuple[CommandRun, ...] = ()
    """Commands that were run last, oldest first."""
    limit: LoopLimit | None = None
    """How many loops it may take, and why."""
    extended_from: int | None = None
    """What the limit was before it was last extended."""
    history: tuple[LoopTrace, ...] = ()
    """What its loops did, oldest first."""
    sure: bool = True
    """Whether the model was sure of itself in the last loop, or said nothing of it."""
    goal: str = ""
    """The goal it had when the user last spoke; empty before its first loop."""
    replanned: bool = False
    """Whether there was a replan since the user last spoke."""
    grants: int = 1
    """How often the whole budget was given: once more with each answer of the user's."""
    tokens: int = 0
    cost_usd: float | None = None
    """What models used for it."""
    asked: tuple[ConsultationKind, ...] = ()
    """What the user was consulted about."""
    objective: TaskObjective = Field(default_factory=lambda given: TaskObjective(request=given["text"]))
    """What it is for, in parts, and how far they are met."""

    @property
    def acted(self) -> bool:
        """Whether it changed a file or ran a command."""
        return self.ran or bool(self.changed)


class TierUsage(Frozen):
    """What one tier has used in this session; `cost_usd` is None where a price is not known."""

    calls: int = 0
    tokens: Usage = Usage.model_construct()
    cost_usd: float | None = None


class AgentState(Frozen):
    """The whole. Only `apply` makes the next one. What can grow is bounded; the event log keeps all."""

    session_id: str = ""
    workspace: str = ""
    model: str = ""
    mode: Mode = "ask"
    attended: bool = True
    """Whether a user is there who can be asked."""
    effort: EffortChoice = "auto"
    effort_chosen: bool = False
    """Whether the user chose the effort in this session. Opening it again keeps that choice."""
    seq: int = 0
    step: Step = Step.PLANNING
    status: Status = Status.SUCCESS
    vitals: Vitals = Vitals.model_construct()
    vitals_over_time: tuple[Vitals, ...] = ()
    """The last of them, oldest first, for the chart."""
    confident: bool = True
    """Whether mood was well since the user was last asked about it."""
    praised: bool = False
    """Whether the user rated the last request well."""
    prompt_tokens: int = 0
    """How much of the model's window the last prompt took."""
    verify: str | None = None
    """The command whose success requests need; empty if the user wants none, None if nobody knows."""
    items: Items = Items.model_construct()
    pattern: PromptPattern = "base_main"
    """The prompt pattern the model chose for its next call."""
    last_reply: str = ""
    """The beginning of what the user last read."""
    reply: str = ""
    """All of it, except for the middle of a very long one."""
    summaries: tuple[str, ...] = ()
    """The last requests in a line each, oldest first."""
    said: tuple[str, ...] = ()
    """How the user's last messages begin, oldest first; they outlive the transcript."""
    decided: tuple[str, ...] = ()
    """Why decisions were made, a line each, oldest first, the newest all of them; they too."""
    plans: tuple[Plan, ...] = ()
    active_plan_id: str | None = None
    task_list: TaskList | None = None
    """The list that runs in the background, or ran last."""
    consultation: Consultation | None = None
    rules_use: RulesUse = "whole"
    """What the user said of rules that are too long."""
    transcript: tuple[TranscriptEntry, ...] = ()
    transcript_chars: int = 0
    shown_files: Mapping[str, tuple[str, ...]] = {}
    """The evidence in the transcript that shows a file as it is, by path."""
    files_note: str = ""
    """What the model was last told of the files there are."""
    evidence_count: int = 0
    request: Request | None = None
    finished: Request | None = None
    """The request before, as it was when it ended."""
    queue: tuple[Action, ...] = ()
    """Actions of the last decision that have not run yet, in order."""
    next_step: NextStep = "continue"
    """What the last decision wants after its actions; "continue" once one of them failed."""
    closing: str = ""
    """The last decision's reply, to be given once all its actions have succeeded."""
    objection: str | None = None
    """The last decision's own "no" to its goal or constraints, if the user is to be asked about it."""
    doubted: bool = False
    """Whether the last decision doubted itself and the doubt went back to the model."""
    running: ActionStarted | None = None
    """The action the chat has started. If it is still here after a restart, its outcome is unknown."""
    task_running: ActionStarted | None = None
    """The action the background has started."""
    background_commands: tuple[BackgroundCommand, ...] = ()
    """Commands that go on in the background; after a crash, what became of them is unknown."""
    approval: Approval | None = None
    approved: str | None = None
    """Digest of the one action the user said yes to; used once."""
    allowed: tuple[ApprovalScope, ...] = ()
    """What the user said "always" to; forgotten when the session is opened again."""
    refused: tuple[str, ...] = ()
    """Calls the user said no to since their last message."""
    unseen: tuple[str, ...] = ()
    """Files changed since the user last said something."""
    list_granted: bool = False
    """Whether the user said yes to an action of the list in hand, and saw how many files it touches."""
    change_sets: tuple[ChangeSet, ...] = ()
    """What was done to files, oldest first, and what of it was taken back."""
    task_answer: ApprovalAnswered | None = None
    """The last answer to a question of the background's, with the digest it binds to; used once."""
    usage: Mapping[TierName, TierUsage] = {}

    @property
    def active_plan(self) -> Plan | None:
        """The plan in hand."""
        return next((plan for plan in self.plans if plan.plan_id == self.active_plan_id), None)

    @property
    def background_runs(self) -> bool:
        """Whether a task list is under way."""
        return self.task_list is not None and not self.task_list.ended


def purpose_of(state: AgentState, task: Task) -> str:
    """What a task is for: the step it belongs to, else the request in whose background it runs."""
    for step in (step for plan in state.plans for step in plan.steps):
        if any(one.task_id == task.task_id for one in step.task_list):
            return f"{step.name}: {step.description}"
    return state.request.text if state.request else task.operation


def new_state(session_id: str = "") -> AgentState:
    """The state of a session in which nothing has happened yet. No validator of the whole is ever needed."""
    return AgentState.model_construct(session_id=session_id)
