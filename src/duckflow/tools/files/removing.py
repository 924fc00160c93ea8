"""Tools file_ops.delete_file and file_ops.move_file."""

from functools import partial

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.differences import difference_of
from duckflow.tools.files.suggestions import suggesting


class DeleteFile(Frozen):
    """Arguments of file_ops.delete_file."""

    path: str = Field(description="the file, relative to the workspace")


class MoveFile(Frozen):
    """Arguments of file_ops.move_file."""

    path: str = Field(description="the file, relative to the workspace")
    to: str = Field(description="its new path; nothing may be there yet")


def _delete(args: DeleteFile, access: Access) -> ToolResult:
    path = access.workspace.relative(args.path)
    with suggesting(access.workspace, path):
        access.delete(path)
    return ToolResult(text=f"deleted {path}", path=path, changed=(path,))


def _move(args: MoveFile, access: Access) -> ToolResult:
    workspace = access.workspace
    path, to = workspace.relative(args.path), workspace.relative(args.to)
    _check_target(workspace, path, to)
    with suggesting(workspace, path):
        access.move(path, to)
    return ToolResult(text=f"moved {path} to {to}", path=to, changed=(path, to))


def _propose_move(args: MoveFile, workspace: Workspace) -> Proposal:
    path, to = workspace.relative(args.path), workspace.relative(args.to)
    _check_target(workspace, path, to)
    return Proposal(f"rename from {path}\nrename to {to}\n")


def _check_target(workspace: Workspace, path: str, to: str) -> None:
    """Raise ToolError if the new path exists, before the user is asked about an impossible move."""
    there = workspace.status(to)
    if there is None:
        return
    if there.kind == "folder":
        name = path.rpartition("/")[2]
        raise ToolError(f"{to}: is a folder; to move the file into it, write {to}/{name}.")
    if path == to:
        raise ToolError(f"{to}: is the file itself; there is nothing to move.")
    raise ToolError(f"{to}: exists already; nothing was moved. Choose another name, or delete it first.")


def _propose_delete(args: DeleteFile, workspace: Workspace) -> Proposal:
    path = workspace.relative(args.path)
    gone = difference_of(path, workspace.read_bytes(path, cap=LARGEST), None)
    return Proposal(gone or f"--- a/{path}\n+++ /dev/null\n")


DELETE_FILE = Tool(
    operation="file_ops.delete_file",
    args=DeleteFile,
    summary="remove the file at path",
    effect="delete",
    run=partial(run_in_thread, _delete),
    propose=partial(run_in_thread, _propose_delete),
    targets=lambda args: (args.path,),
)

MOVE_FILE = Tool(
    operation="file_ops.move_file",
    args=MoveFile,
    summary="move or rename the file at path; to: its new path",
    effect="write",
    run=partial(run_in_thread, _move),
    propose=partial(run_in_thread, _propose_move),
    targets=lambda args: (args.path, args.to),
)
