"""file_ops.search: lines that match a pattern."""

from pathlib import Path

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.protected import STRENGTH
from duckflow.safety.redaction.patterns import lines_with_secrets
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.searching.hits import FILE_CAP, Hits, Query, ask_ourselves, ask_ripgrep
from duckflow.tools.uncancelled import finish

LINES_SHOWN = 200
COLUMNS_SHOWN = 240
LONGEST_PATTERN = 1000
_NOT_SEARCHED = "protected files, and lines that hold a key or token, are not searched"


class Search(Frozen):
    """What search takes."""

    pattern: str = Field(description="a regular expression, matched line by line")
    path: str = Field(default=".", description="the folder or file to search, relative to the workspace")
    glob: str | None = Field(default=None, description="only files that match, such as *.py")

    @field_validator("pattern", "glob")
    @classmethod
    def _fit_for_a_command_line(cls, value: str | None) -> str | None:
        # Checked here and not by limits on the field: those would make a small model's grammar huge.
        if value == "":
            raise ValueError("is empty")
        if value and len(value) > LONGEST_PATTERN:
            raise ValueError(f"has {len(value)} characters, {LONGEST_PATTERN} at most")
        if value and any(letter == "\0" or "\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError("may not contain NUL or half a surrogate pair")
        return value


def search_tool(ripgrep: Path | None) -> Tool:
    """The tool, which asks ripgrep if it can."""

    async def run(args: Search, access: Access) -> ToolResult:
        workspace = access.workspace
        query = Query(args.pattern, workspace.relative(args.path, folder=True), args.glob)
        there = await finish(workspace.status, query.path)
        if there is None or there.kind == "other":
            raise ToolError(f"{query.path}: {'can not be searched' if there else 'does not exist'}.")
        if ripgrep is None:
            hits = await ask_ourselves(workspace, query)
        else:
            hits = await ask_ripgrep(workspace, ripgrep, query)
        return ToolResult(text=await finish(_show, workspace, query, hits))

    return Tool(
        operation="file_ops.search",
        args=Search,
        summary="lines that match the regular expression pattern, below path, in files that match glob",
        effect="read",
        run=run,
        targets=lambda args: (args.path,),
    )


def _show(workspace: Workspace, query: Query, hits: Hits) -> str:
    permitted = max(STRENGTH["guarded"], STRENGTH[workspace.protection(query.path)])
    rows: list[str] = []
    for file, numbers in hits.lines.items():
        rows.extend(_lines(workspace, file, numbers, permitted))
        if len(rows) > LINES_SHOWN:
            break
    if not rows:
        return f"no line matches {query.pattern} in {query.path} ({_NOT_SEARCHED})"
    more = len(rows) > LINES_SHOWN or not hits.complete
    count = min(len(rows), LINES_SHOWN)
    head = f"{count} matching lines{', and there are more: narrow it down' if more else ''}"
    return "\n".join([head, *rows[:LINES_SHOWN]])


def _lines(workspace: Workspace, file: str, numbers: list[int], permitted: int) -> list[str]:
    """The lines as the workspace has them; none with a secret, none of a file that needs more permission.

    Not even that there are any: whether a guess matches would tell a secret letter by letter.
    """
    try:
        if STRENGTH[workspace.protection(file)] > permitted:
            return []
        data = workspace.read_bytes(file, cap=FILE_CAP)
    except ToolError:
        return []  # gone, or not inside any more
    encoding = "utf-16" if data.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8"
    text = data.decode(encoding, errors="replace")
    lines = text.split("\n")
    withheld = lines_with_secrets(text)
    return [
        f"{file}:{number}: {cut(lines[number - 1].strip(), COLUMNS_SHOWN)}"
        for number in numbers
        if number <= len(lines) and number not in withheld
    ]
