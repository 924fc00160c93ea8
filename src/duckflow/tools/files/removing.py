"""file_ops.delete_file and move_file."""

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.differences import unified
from duckflow.tools.files.suggestions import suggesting
from duckflow.tools.threads import finish


class DeleteFile(Frozen):
    """What delete_file takes."""

    path: str = Field(description="the file, relative to the workspace")


class MoveFile(Frozen):
    """What move_file takes."""

    path: str = Field(description="the file, relative to the workspace")
    to: str = Field(description="its new path; nothing may be there yet")


async def _run_delete(args: DeleteFile, access: Access) -> ToolResult:
    return await finish(_delete, args, access)


def _delete(args: DeleteFile, access: Access) -> ToolResult:
    path = access.workspace.relative(args.path)
    with suggesting(access.workspace, path):
        access.delete(path)
    return ToolResult(text=f"deleted {path}", path=path, changed=(path,))


async def _propose_delete(args: DeleteFile, workspace: Workspace) -> Proposal:
    return Proposal(await finish(_gone, workspace, args.path))


async def _run_move(args: MoveFile, access: Access) -> ToolResult:
    return await finish(_move, args, access)


def _move(args: MoveFile, access: Access) -> ToolResult:
    workspace = access.workspace
    path, to = workspace.relative(args.path), workspace.relative(args.to)
    _check_target(workspace, path, to)
    with suggesting(workspace, path):
        access.move(path, to)
    return ToolResult(text=f"moved {path} to {to}", path=to, changed=(path, to))


async def _propose_move(args: MoveFile, workspace: Workspace) -> Proposal:
    return Proposal(await finish(_renamed, workspace, args))


def _renamed(workspace: Workspace, args: MoveFile) -> str:
    path, to = workspace.relative(args.path), workspace.relative(args.to)
    _check_target(workspace, path, to)
    return f"rename from {path}\nrename to {to}\n"


def _check_target(workspace: Workspace, path: str, to: str) -> None:
    """ToolError if something is at the new path, before the user is asked about what can't be done."""
    there = workspace.status(to)
    if there is None:
        return
    if there.kind == "folder":
        name = path.rpartition("/")[2]
        raise ToolError(f"{to}: is a folder; to move the file into it, write {to}/{name}.")
    if path == to:
        raise ToolError(f"{to}: is the file itself; there is nothing to move.")
    raise ToolError(f"{to}: exists already; nothing was moved. Choose another name, or delete it first.")


def _gone(workspace: Workspace, path: str) -> str:
    path = workspace.relative(path)
    data = workspace.read_bytes(path, cap=LARGEST)
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        return f"Binary files a/{path} and /dev/null differ\n"
    return unified(path, text, None) or f"--- a/{path}\n+++ /dev/null\n"


DELETE_FILE = Tool(
    operation="file_ops.delete_file",
    args=DeleteFile,
    summary="remove the file at path",
    effect="delete",
    run=_run_delete,
    propose=_propose_delete,
    targets=lambda args: (args.path,),
)

MOVE_FILE = Tool(
    operation="file_ops.move_file",
    args=MoveFile,
    summary="move or rename the file at path; to is its new path",
    effect="write",
    run=_run_move,
    propose=_propose_move,
    targets=lambda args: (args.path, args.to),
)
