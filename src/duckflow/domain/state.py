"""AgentState: everything the agent knows, in one frozen value with one owner (the session)."""

from collections.abc import Mapping
from typing import Literal

from duckflow.domain.decision import Action, NextStep, TaskProfile
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import TierName, Usage
from duckflow.domain.transitions import Status, Step

Mode = Literal["plan", "ask", "edits", "auto"]
RequestOutcome = Literal[
    "done", "pending_user", "deferred", "awaiting_approval", "limit", "provider_error", "interrupted"
]


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


class Entry(Frozen):
    """One message of the conversation with the model. Tool results carry their evidence id."""

    role: Literal["user", "assistant"]
    text: str
    evidence_id: str | None = None
    operation: str | None = None
    path: str | None = None


class Request(Frozen):
    """What the user asked, until it ends."""

    request_id: str
    text: str
    loops: int = 0
    profile: TaskProfile | None = None
    """What kind of task the model last took it for."""
    outcome: RequestOutcome | None = None
    """How the work on it last ended; None while it goes on."""
    changed: tuple[str, ...] = ()
    """Files this request wrote, moved or deleted, oldest first."""


class Running(Frozen):
    """An action that was started. If it is still here after a restart, its outcome is unknown."""

    action_id: str
    action: Action


class Approval(Frozen):
    """A change the user is asked about. `digest` binds the answer to what was shown."""

    approval_id: str
    action: Action
    intent: str
    rationale: str
    difference: str
    digest: str


class TierUsage(Frozen):
    """What one tier has used in this session; `cost_usd` is None where a price is not known."""

    calls: int = 0
    tokens: Usage = Usage()
    cost_usd: float | None = None


class AgentState(Frozen):
    """The whole. Only `apply` makes the next one. What can grow is bounded; the event log keeps all."""

    session_id: str = ""
    workspace: str = ""
    model: str = ""
    mode: Mode = "ask"
    seq: int = 0
    step: Step = Step.PLANNING
    status: Status = Status.SUCCESS
    items: Items = Items()
    transcript: tuple[Entry, ...] = ()
    transcript_chars: int = 0
    files_note: str = ""
    """What the model was last told of the files there are."""
    evidence_count: int = 0
    request: Request | None = None
    queue: tuple[Action, ...] = ()
    """Actions of the last decision that have not run yet, in order."""
    next_step: NextStep = "continue"
    """What the last decision wants after its actions; "continue" once one of them failed."""
    objection: str | None = None
    """The last decision's own "no" to its goal or constraints."""
    running: Running | None = None
    approval: Approval | None = None
    approved: str | None = None
    """Digest of the one action the user said yes to; used once."""
    usage: Mapping[TierName, TierUsage] = {}
