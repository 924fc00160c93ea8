"""Tool file_ops.outline: a line for each definition in a file, without the bodies."""

from typing import TYPE_CHECKING

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.editing.text_form import plain
from duckflow.tools.files.reading import suggesting

if TYPE_CHECKING:
    from duckflow.tools.outline.definitions import Definition, FoundDefinitions

LINES_SHOWN = 400
WIDTH = 120
_DEEPEST = 12


class OutlineFile(Frozen):
    """Arguments of file_ops.outline."""

    path: str = Field(description="the file, relative to the workspace")


async def _run(args: OutlineFile, access: Access) -> ToolResult:
    from duckflow.tools.outline.definitions import find_definitions  # noqa: PLC0415 - not needed at start

    path = access.workspace.relative(args.path)
    text = await run_in_thread(_read, access.workspace, path)
    if not text:
        return ToolResult(text=f"{path} (empty)", path=path)
    found = await find_definitions(path, text, LINES_SHOWN)
    return ToolResult(text=_show(path, text, found), path=path)


def _read(workspace: Workspace, path: str) -> str:
    with suggesting(workspace, path):
        return plain(workspace.read_text(path))


def _show(path: str, text: str, found: "FoundDefinitions") -> str:
    count = len(text.removesuffix("\n").split("\n"))
    notes = [f"outline of {count} lines"]
    if found.damaged:
        notes.append(f"line {found.damaged} can't be parsed, something may be missing")
    if not found.rows:
        notes.append("nothing is defined here")
    lines = [_line(row) for row in found.rows]
    if found.more or not found.complete:
        lines.append(f"… {found.more}{'' if found.complete else ' or more'} are left out")
    return "\n".join([f"{path} ({'; '.join(notes)})", *lines])


def _line(row: "Definition") -> str:
    place = f"{row.first}-{row.last}" if row.last > row.first else f"{row.first}"
    return f"{place}: {'  ' * min(row.depth, _DEEPEST)}{cut(row.text, WIDTH)}"


OUTLINE = Tool(
    operation="file_ops.outline",
    args=OutlineFile,
    summary="what path defines, by line",
    effect="read",
    run=_run,
    targets=lambda args: (args.path,),
)
