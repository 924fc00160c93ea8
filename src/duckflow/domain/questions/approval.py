"""An approval: the question before a change, with everything that a yes would cover (G1, G5)."""

from typing import Literal

from pydantic import Field

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine

Risk = Literal["low", "medium", "high", "forbidden"]

Because = Literal[
    "mode",
    "protected",
    "objection",
    "consent",
    "risk",
    "outside",
    "no_sandbox",
    "failed",
    "conflict",
    "hook",
    "changed",
]
"""Reason for asking: the mode, a protected path, the model's own doubt, consent that only the user can give,
the risk, a path outside the workspace, a command without a sandbox, a command that failed, a file that
another process changed meanwhile, a hook, or a change since an earlier approval."""


class ApprovalScope(Frozen):
    """Actions that "always" covers: edits in a folder, commands that begin alike, an MCP tool, or a site."""

    what: Literal["edits", "command", "tool", "site"]
    scope: str


class Approval(Frozen):
    """A change the user is asked about. `digest` binds the answer to what was shown."""

    approval_id: str
    action: Action
    intent: str
    rationale: str
    because: Because = "mode"
    risk: Risk = "medium"
    reasons: tuple[str, ...] = ()
    """Reasons for the risk, as catalogue names."""
    impact: tuple[TextLine, ...] = ()
    alternatives: tuple[TextLine, ...] = ()
    difference: str
    digest: str
    kind: ApprovalScope | None = None
    """Actions that "always" would cover; None if the user must be asked every time."""
    editable: bool = False
    """True if the user may edit the content or command first."""
    before: dict[str, str | None] = Field(default_factory=dict)
    """SHA-256 of each affected file when shown; None if it did not exist."""
    outside: str | None = None
    """Real path of a file outside the workspace that would be read."""
    folders: tuple[str, ...] = ()
    """Build folders that would change, each reported as a whole."""
    task_id: str | None = None
    """Background task that waits for the answer; None for the chat."""


class AnswerApproval(Frozen):
    """The user's answer to the open approval."""

    yes: bool
    reason: str = ""
    always: bool = False
    """True if the yes applies to all actions of this kind while the session is open."""
    edited: str | None = None
    """Content or command to use instead; the yes applies to exactly this."""
