"""File tools for a folder that is open in an editor: they read unsaved text, and never overwrite it (M6)."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.text_form import plain
from duckflow.tools.files.reading import READ_FILE, ReadFile, excerpt_of


class Unsaved(Protocol):
    """Reads files as they are in an editor."""

    async def __call__(self, path: Path, /) -> str | None:
        """Return the text of a file by its real path, or None if no editor has it open."""
        ...


def with_unsaved(tool: Tool[Any], unsaved: Unsaved) -> Tool[Any]:
    """Return the tool for a folder that is open in an editor."""

    async def read(args: ReadFile, access: Access) -> ToolResult:
        result = await tool.run(args, access)
        text = None if access.outside else await _differing(access.workspace, args.path, unsaved)
        if text is None:
            return result
        path = access.workspace.relative(args.path)
        shown = excerpt_of(path, EncodedText(text), args, "not saved yet in the editor")
        return ToolResult(text=shown, path=path)

    async def guard(args: Frozen, workspace: Workspace) -> None:
        for path in tool.targets(args):
            if await _differing(workspace, path, unsaved) is not None:
                raise ToolError(f"{path}: has unsaved changes in the editor. Ask the user to save it first.")

    async def propose(args: Frozen, workspace: Workspace) -> Proposal:
        await guard(args, workspace)
        return await tool.propose(args, workspace)

    async def change(args: Frozen, access: Access) -> ToolResult:
        await guard(args, access.workspace)
        return await tool.run(args, access)

    if tool is READ_FILE:
        return replace(tool, run=read)
    return replace(tool, run=change, propose=propose) if tool.effect in ("write", "delete") else tool


async def _differing(workspace: Workspace, path: str, unsaved: Unsaved) -> str | None:
    """Return the editor's text if it differs from the file on the disk, else None, as for a new file."""
    try:
        relative = workspace.relative(path)
        saved = (await run_in_thread(workspace.read_encoded, relative)).text
    except ToolError:
        return None
    text = await unsaved(workspace.root / relative)
    return text if text is not None and plain(text) != plain(saved) else None
