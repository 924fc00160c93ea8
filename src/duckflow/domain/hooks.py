"""Hooks: commands of the user's that run when something happens and may refuse it (SPEC L5)."""

from typing import Literal

from duckflow.domain.frozen import Frozen

HookEvent = Literal[
    "PreToolUse",
    "PostToolUse",
    "UserPromptSubmit",
    "Stop",
    "Notification",
    "SessionStart",
    "SessionEnd",
]
"""When hooks run, by the names that users of other agents know."""

HookOutcome = Literal["ok", "asks", "blocked", "failed"]

HOOK_SECONDS = 60.0
"""How long a hook may take if its file says nothing."""


class Hook(Frozen):
    """One command, when it runs, and the file it is from."""

    event: HookEvent
    matcher: str = ""
    """The tools (or kinds of notification, or of start) it is for; empty for all."""
    condition: str = ""
    """A narrower rule, as `Bash(git push *)`."""
    command: str
    seconds: float = HOOK_SECONDS
    blocks_on_failure: bool = False
    """Whether what it was to watch is refused if it can't say anything."""
    origin: str


class HookList(Frozen):
    """The hooks of one file, and what stands in it that is not used here."""

    hooks: tuple[Hook, ...] = ()
    unused: tuple[str, ...] = ()
