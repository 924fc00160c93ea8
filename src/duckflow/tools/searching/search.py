"""Tool file_ops.search: lines that match a pattern."""

from pathlib import Path
from typing import Any

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import STRENGTH
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.searching.hits import Hits, Query, ask_ourselves, ask_ripgrep
from duckflow.tools.searching.ripgrep import BadPattern
from duckflow.tools.searching.shown_hits import show_hits

LONGEST_PATTERN = 1000
MOST_CONTEXT = 20
_ERROR = "error: "
_NOT_SEARCHED = "protected files, and lines that hold a key or token, are not searched"


class Search(Frozen):
    """Arguments of file_ops.search."""

    pattern: str = Field(description="a regular expression, matched line by line")
    path: str = Field(default=".", description="the folder or file to search, relative to the workspace")
    glob: str | None = Field(default=None, description="only files that match, such as *.py")
    context: int = Field(default=0, ge=0, description="lines to show around each match")

    @field_validator("pattern", "glob")
    @classmethod
    def _fit_for_a_command_line(cls, value: str | None) -> str | None:
        # Checked here, because limits on the field would make a small model's grammar huge.
        if value == "":
            raise ValueError("is empty")
        if value and len(value) > LONGEST_PATTERN:
            raise ValueError(f"has {len(value)} characters, {LONGEST_PATTERN} at most")
        if value and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("may not contain NUL or half a surrogate pair")
        return value


def search_tool(ripgrep: Path | None) -> Tool[Any]:
    """Return the tool, which uses ripgrep if it is available."""

    async def run(args: Search, access: Access) -> ToolResult:
        workspace = access.workspace
        query = Query(args.pattern, workspace.relative(args.path, folder=True), args.glob)
        there = await run_in_thread(workspace.status, query.path)
        if there is None or there.kind == "other":
            raise ToolError(f"{query.path}: {'can not be searched' if there else 'does not exist'}.")
        hits, note = await _find(workspace, ripgrep, query)
        permitted = max(STRENGTH["guarded"], STRENGTH[workspace.protection(query.path)])
        shown = await run_in_thread(show_hits, workspace, hits, permitted, min(args.context, MOST_CONTEXT))
        nothing = f"no line matches {query.pattern} in {query.path} ({_NOT_SEARCHED})"
        return ToolResult(text="\n".join(filter(None, (note, shown or nothing))))

    return Tool(
        operation="file_ops.search",
        args=Search,
        summary="lines that match the regex pattern in path and glob, with context lines",
        effect="read",
        run=run,
        targets=lambda args: (args.path,),
    )


async def _find(workspace: Workspace, ripgrep: Path | None, query: Query) -> tuple[Hits, str]:
    """Return the hits, and a note if the pattern is no regular expression and was searched as plain text."""

    async def ask(query: Query) -> Hits:
        if ripgrep is None:
            return await ask_ourselves(workspace, query)
        return await ask_ripgrep(workspace, ripgrep, query)

    try:
        return await ask(query), ""
    except BadPattern as exc:
        if ripgrep is not None and "not supported" in str(exc):  # look-around and back references
            return await ask_ourselves(workspace, query, ripgrep), ""
        lines = str(exc).splitlines()
        reason = next((line for line in lines if line.startswith(_ERROR)), lines[0]).removeprefix(_ERROR)
        note = f"{query.pattern} is no regular expression ({reason}), so it was searched as plain text."
        return await ask(query._replace(literal=True)), note
