"""Events about the session as a whole: model, mode, costs, memory, hooks, errors. All events: `events.py`."""

from typing import Literal

from pydantic import Field, JsonValue

from duckflow.domain.errors import UserError
from duckflow.domain.extensions import HookEvent, HookOutcome
from duckflow.domain.frozen import Frozen
from duckflow.domain.model import EffortChoice, TierName, Usage
from duckflow.domain.modes import Mode
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.domain.work.agents import AgentKind, AgentOutcome
from duckflow.domain.work.memory import MemoryKind
from duckflow.domain.work.review import ReviewReport


class RequestRated(Frozen):
    """The user rated the last request, from 1 to 10 (J7)."""

    type: Literal["request_rated"] = "request_rated"
    request_id: str
    rating: int


class UsageReported(Frozen):
    """Usage of one model call. `cost_usd` is None if the price is unknown."""

    type: Literal["usage"] = "usage"
    tier: TierName
    model: str
    output: str
    tokens: Usage
    cost_usd: float | None = None


class ModeChanged(Frozen):
    """The user chose another permission mode."""

    type: Literal["mode_changed"] = "mode_changed"
    mode: Mode


class PermissionChanged(Frozen):
    """The user kept an "always" answer for this folder or for all folders, or revoked it."""

    type: Literal["permission_changed"] = "permission_changed"
    kind: ApprovalScope
    change: Literal["here", "everywhere", "revoked"]


class Compacted(Frozen):
    """The user asked to shorten the conversation in the model's prompts: a recap replaces older parts."""

    type: Literal["compacted"] = "compacted"


class ModelChanged(Frozen):
    """The user chose another model for the rest of the session."""

    type: Literal["model_changed"] = "model_changed"
    model: str


class EffortChanged(Frozen):
    """The user chose how much models think for the rest of the session."""

    type: Literal["effort_changed"] = "effort_changed"
    effort: EffortChoice


class SessionTitled(Frozen):
    """The session got a short title for lists of sessions."""

    type: Literal["session_titled"] = "session_titled"
    title: str


ContactOutcome = Literal["connected", "refused", "failed"]


class HostContacted(Frozen):
    """A command connected to a host, or tried to: `refused` if the user has not allowed it (SAFETY 22)."""

    type: Literal["host_contacted"] = "host_contacted"
    host: str
    port: int
    outcome: ContactOutcome


class AgentStarted(Frozen):
    """An agent began to explore or to work on its own copy of the folder (O1, O2)."""

    type: Literal["agent_started"] = "agent_started"
    agent_id: str
    name: str
    kind: AgentKind
    task: str


class AgentMoved(Frozen):
    """An agent began its next action, or its vitals changed."""

    type: Literal["agent_moved"] = "agent_moved"
    agent_id: str
    loops: int
    vitals: Vitals
    operation: str = ""
    about: str = ""


class AgentEnded(Frozen):
    """An agent ended. `files` counts the files that it changed on its copy."""

    type: Literal["agent_ended"] = "agent_ended"
    agent_id: str
    name: str
    outcome: AgentOutcome
    loops: int = 0
    vitals: Vitals = Vitals.model_construct()
    satisfaction: float | None = None
    files: int = 0
    problem: str = ""
    """Reason that it could not finish, in its own words."""


class ReviewFinished(Frozen):
    """A review of changes ended, with its findings and their proofs (O4)."""

    type: Literal["review_finished"] = "review_finished"
    report: ReviewReport


class MemoryKept(Frozen):
    """A note was stored for later sessions, for one folder or for all."""

    type: Literal["memory_kept"] = "memory_kept"
    kind: MemoryKind
    text: str
    workspace: str = ""


class MemoryRecalled(Frozen):
    """Notes from earlier sessions that relate to the request were found, best match first."""

    type: Literal["memory_recalled"] = "memory_recalled"
    texts: tuple[str, ...]


class HookRan(Frozen):
    """A hook ran: a command of the user, or of a project the user trusts (L5)."""

    type: Literal["hook"] = "hook"
    hook: HookEvent
    command: str
    outcome: HookOutcome
    reason: str = ""
    tool: str = ""
    told: str = ""
    """Message for the model, unless it is part of the action's result."""


class ErrorReported(Frozen):
    """An error or notice for the user: a catalogue key and its values."""

    type: Literal["error"] = "error"
    key: str
    values: dict[str, JsonValue] = Field(default_factory=dict)
    notice: bool = False
    """True for a notice: nothing went wrong."""

    @classmethod
    def of(cls, error: UserError) -> "ErrorReported":
        """Return the event for a user error."""
        return cls(key=error.key, values={name: str(value) for name, value in error.values.items()})
