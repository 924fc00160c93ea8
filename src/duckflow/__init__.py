"""Duckflow, a coding agent for the terminal, and `Session` for Python programs (docs/python.md)."""

from importlib import import_module
from typing import TYPE_CHECKING

from duckflow.config.version import __version__

if TYPE_CHECKING:
    from duckflow.api import OpenSession as Session
    from duckflow.api import Update, Work, delete_session, earlier_sessions, find_session
    from duckflow.domain.errors import (
        BadAnswer,
        PromptTooLong,
        ProviderError,
        Unavailable,
        UsageError,
        UserError,
    )
    from duckflow.domain.events import (
        ActionFinished,
        ActionQueued,
        ActionStarted,
        AgentEnded,
        AgentMoved,
        AgentStarted,
        ApprovalAnswered,
        ApprovalRequested,
        AttemptPlanned,
        BackgroundCommand,
        CommandEnded,
        CommandStarted,
        Compacted,
        ConsultationAnswered,
        ConsultationRequested,
        DecisionMade,
        EffortChanged,
        ErrorReported,
        Evaluated,
        Event,
        HookRan,
        HostContacted,
        LimitSet,
        MemoryKept,
        MemoryRecalled,
        ModeChanged,
        ModelChanged,
        PermissionChanged,
        PlanChanged,
        Recovered,
        Reply,
        RequestFinished,
        RequestRated,
        RequirementsFound,
        ReviewFinished,
        Rewound,
        SessionStarted,
        SessionTitled,
        StoredEvent,
        TaskFinished,
        TaskListStarted,
        TaskReported,
        Transition,
        TransitionRefused,
        Undone,
        UsageReported,
        UserMessage,
        VerifySet,
        VitalsChanged,
    )
    from duckflow.domain.live_updates import (
        LiveUpdate,
        OutputPiece,
        ReplyPiece,
        ReplyVoid,
        ThinkingShown,
        Waiting,
        Writing,
    )
    from duckflow.domain.questions.approval import AnswerApproval, Approval
    from duckflow.domain.questions.consultation import ChooseWay, Consultation

__all__ = [
    "ActionFinished",
    "ActionQueued",
    "ActionStarted",
    "AgentEnded",
    "AgentMoved",
    "AgentStarted",
    "AnswerApproval",
    "Approval",
    "ApprovalAnswered",
    "ApprovalRequested",
    "AttemptPlanned",
    "BackgroundCommand",
    "BadAnswer",
    "ChooseWay",
    "CommandEnded",
    "CommandStarted",
    "Compacted",
    "Consultation",
    "ConsultationAnswered",
    "ConsultationRequested",
    "DecisionMade",
    "EffortChanged",
    "ErrorReported",
    "Evaluated",
    "Event",
    "HookRan",
    "HostContacted",
    "LimitSet",
    "LiveUpdate",
    "MemoryKept",
    "MemoryRecalled",
    "ModeChanged",
    "ModelChanged",
    "OutputPiece",
    "PermissionChanged",
    "PlanChanged",
    "PromptTooLong",
    "ProviderError",
    "Recovered",
    "Reply",
    "ReplyPiece",
    "ReplyVoid",
    "RequestFinished",
    "RequestRated",
    "RequirementsFound",
    "ReviewFinished",
    "Rewound",
    "Session",
    "SessionStarted",
    "SessionTitled",
    "StoredEvent",
    "TaskFinished",
    "TaskListStarted",
    "TaskReported",
    "ThinkingShown",
    "Transition",
    "TransitionRefused",
    "Unavailable",
    "Undone",
    "Update",
    "UsageError",
    "UsageReported",
    "UserError",
    "UserMessage",
    "VerifySet",
    "VitalsChanged",
    "Waiting",
    "Work",
    "Writing",
    "__version__",
    "delete_session",
    "earlier_sessions",
    "find_session",
]

_HOMES = (
    "duckflow.domain.errors",
    "duckflow.domain.questions.approval",
    "duckflow.domain.questions.consultation",
    "duckflow.domain.live_updates",
    "duckflow.domain.events",
    "duckflow.api",
)
"""Modules that define the exported names, the cheapest to import first."""


def __getattr__(name: str) -> object:
    """Import a name on first use: `duckflow --help` does not need the engine."""
    if name == "Session":
        return import_module("duckflow.api").OpenSession
    for home in _HOMES if name in __all__ else ():
        found = getattr(import_module(home), name, None)
        if found is not None:
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
