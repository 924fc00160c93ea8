"""An approval: the question before a change, with everything that a yes would allow (G1, G5)."""

from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine

STOPPED = "The user stopped the work before answering."
"""Beginning of the result of an action about which the user was asked when they stopped the work."""

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
    "deletion",
]
"""Reason for asking: the mode, a protected path, the model's own doubt, consent that only the user can give,
the risk, a path outside the workspace, a command without a sandbox, a command that failed, a file that
another process changed meanwhile, a hook, a change since an earlier approval, or a deletion by a small model
for which the user did not ask."""


class ApprovalScope(Frozen):
    """Actions that "always" allows: edits in a folder, commands that begin alike, an MCP tool, tools of
    an MCP server that only read, a site, or hosts for commands."""

    what: Literal["edits", "command", "tool", "reading_tools", "site", "hosts"]
    scope: str


def allowed_hosts(allowed: Iterable[ApprovalScope]) -> tuple[str, ...]:
    """Return the hosts that commands may reach."""
    return tuple(host for one in allowed if one.what == "hosts" for host in one.scope.split())


class Approval(Frozen):
    """Question about a change. `digest` ties the answer to what the question showed."""

    approval_id: str
    action: Action
    intent: str
    rationale: str
    because: Because = "mode"
    risk: Risk = "medium"
    reasons: tuple[str, ...] = ()
    """Names of the reasons for the risk, as in the catalogue."""
    impact: tuple[TextLine, ...] = ()
    alternatives: tuple[TextLine, ...] = ()
    difference: str
    digest: str
    kind: ApprovalScope | None = None
    """Actions that "always" would allow; None if the user must be asked each time."""
    editable: bool = False
    """True if the user may edit the file content or the command before approving."""
    before: dict[str, str | None] = Field(default_factory=dict)
    """SHA-256 of each affected file when it was shown; None if there was no file."""
    outside: str | None = None
    """Real path of a file outside the workspace that would be read."""
    folders: tuple[str, ...] = ()
    """Build folders that would change. Each is reported as one entry."""
    drafts: tuple[str, ...] = ()
    """Hashes of the call and of its effect. After a no, a draft with one of these is not shown again."""
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
