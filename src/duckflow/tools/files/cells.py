"""Tool file_ops.edit_cell: replaces, inserts, deletes or moves one cell of a notebook."""

from functools import partial
from typing import Literal

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.safety.files.access import Access, PlannedWrite
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.differences import unified
from duckflow.tools.files.reading import NOTEBOOK_CAP, OneFile, suggesting
from duckflow.tools.notebooks.document import CellKind, Notebook


class EditCell(OneFile):
    """Arguments of file_ops.edit_cell."""

    cell: int = Field(ge=1, description="its number from 1; insert: the number of the new cell")
    change: Literal["replace", "insert", "delete", "move"] = Field(
        default="replace", description="the change"
    )
    source: str | None = Field(default=None, description="replace, insert: its whole new text")
    kind: CellKind | None = Field(default=None, description="replace: by default as before; insert: code")
    to: int | None = Field(default=None, ge=1, description="move: its new number")


def propose_cell(args: EditCell, workspace: Workspace) -> Proposal:
    """Return the notebook's new content, and the difference in words."""
    path = workspace.relative(args.path)
    with suggesting(workspace, path):
        file = workspace.read_encoded(path, cap=NOTEBOOK_CAP)
    try:
        notebook = Notebook(file.text)
        after, said = _changed(notebook, args)
    except ToolError as exc:
        raise exc.reworded(f"{path}: {exc}") from exc
    write = PlannedWrite(path, file.digest, file.with_text(path, after), f"{path}: {said}")
    return Proposal(unified(path, file.text, after), write=write)


def _changed(notebook: Notebook, args: EditCell) -> tuple[str, str]:
    count, number = len(notebook.cells), args.cell
    if args.change == "delete":
        return notebook.deleted(
            number
        ), f"deleted cell {number}; later cells have new numbers, {count - 1} are left"
    if args.change == "move":
        if args.to is None:
            raise ToolError("to move a cell, name its new number in `to`")
        return notebook.moved(number, args.to), f"moved cell {number}, which is cell {args.to} now"
    if args.source is None:
        raise ToolError(f"to {args.change} a cell, give its whole text in `source`")
    if args.change == "insert":
        kind = args.kind or "code"
        return notebook.inserted(
            number, args.source, kind
        ), f"inserted cell {number}; later cells have new numbers, 1 to {count + 1} now"
    after = notebook.replaced(number, args.source, args.kind)
    had = notebook.cells[number - 1].get("outputs")
    gone = "; its outputs were removed, because they belonged to the old code" if had else ""
    return after, f"replaced cell {number} of {count}{gone}"


def _edit(args: EditCell, access: Access) -> ToolResult:
    new = access.planned or propose_cell(args, access.workspace).write
    assert new is not None
    if new.changes:
        access.write_bytes(new.path, new.data, expected=new.before)
    return ToolResult(text=new.summary, path=new.path, changed=(new.path,) if new.changes else ())


EDIT_CELL = Tool(
    operation="file_ops.edit_cell",
    args=EditCell,
    summary="one cell of the notebook at path; change: replace or insert (source, kind), delete, move (to)",
    effect="write",
    run=partial(run_in_thread, _edit),
    propose=partial(run_in_thread, propose_cell),
    targets=lambda args: (args.path,),
)
