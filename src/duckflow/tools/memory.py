"""Tool memory.remember: a text for later sessions, which the user must see and allow each time (L2)."""

from collections.abc import Callable
from typing import Any

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.events import MemoryKept
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import line
from duckflow.domain.work.memory import LONGEST_MEMORY, memory_line
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Proposal, Tool, ToolResult

REMEMBER = "memory.remember"


class Remember(Frozen):
    """Arguments of memory.remember."""

    text: str = Field(description="one sentence that can be understood without this conversation")
    everywhere: bool = Field(default=False, description="whether it counts in all folders")

    @field_validator("text")
    @classmethod
    def _short(cls, value: str) -> str:
        text = memory_line(value)
        if not text:
            raise ValueError("is empty")
        if len(" ".join(value.split())) > LONGEST_MEMORY:
            raise ValueError(f"may have {LONGEST_MEMORY} characters at most")
        return text


def memory_tools(workspace: str, clean: Callable[[str], str]) -> tuple[Tool[Any], ...]:
    """Return the tools for long-term memory. `clean` hides secrets."""

    async def run(args: Remember, _access: Access) -> ToolResult:
        if clean(args.text) != args.text:
            raise ToolError("It holds a secret, and secrets are not kept.")
        where = "" if args.everywhere else workspace
        kept = MemoryKept(kind="preference", text=args.text, workspace=where)
        return ToolResult(text=f"Kept for later sessions: {args.text}", events=(kept,))

    async def propose(args: Remember, _workspace: Workspace) -> Proposal:
        where = "everywhere" if args.everywhere else "here"
        impact = line(f"approval.impact.memory_{where}"), line("approval.impact.memory_undo")
        return Proposal(f"{args.text}\n", impact=impact)

    return (
        Tool(
            operation=REMEMBER,
            args=Remember,
            summary="keep what the user wants known in later sessions",
            # It changes what later sessions do, so no mode and no "always" may let it pass unseen.
            effect="consent",
            run=run,
            propose=propose,
        ),
    )
