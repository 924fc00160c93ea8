"""An approval: the question before a change, with all that a yes would cover (SPEC G1, G5)."""

from typing import Literal

from pydantic import Field

from duckflow.domain.decision import Action
from duckflow.domain.frozen import Frozen, replace
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
"""Why it is asked: the mode, a protected path, the model's own doubt, a yes only the user has, the risk,
a path outside the workspace, a command that no sandbox would hold, one that did not end well, a file that
somebody else changed meanwhile, a hook of the user's, or a yes to what is not so any more."""


class ApprovalScope(Frozen):
    """What "always" covers: edits of files in one folder, commands that begin with the same words, one tool
    of an MCP server, or pages of one site."""

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
    """What makes the risk, by the names the catalogue has for it."""
    impact: tuple[TextLine, ...] = ()
    alternatives: tuple[TextLine, ...] = ()
    difference: str
    digest: str
    kind: ApprovalScope | None = None
    """What "always" would cover; None if it must be asked every time."""
    editable: bool = False
    """Whether the user may change what will be written or run."""
    before: dict[str, str | None] = Field(default_factory=dict)
    """SHA-256 of each file it touches as it was when shown; None if there was none."""
    outside: str | None = None
    """The real path of a file outside the workspace that would be read."""
    folders: tuple[str, ...] = ()
    """Build folders that it changes, told as a whole."""
    task_id: str | None = None
    """The background task that waits for the answer, if it is not the chat."""


class AnswerApproval(Frozen):
    """The user's answer to the open approval."""

    yes: bool
    reason: str = ""
    always: bool = False
    """Whether the yes holds for all of this kind, as long as the session is open."""
    edited: str | None = None
    """What shall be written or run instead; a yes to exactly this."""


def asked_by_task(approval: Approval, approval_id: str, task_id: str) -> Approval:
    """The same question, asked by a task of the background."""
    return replace(approval, approval_id=approval_id, task_id=task_id)
