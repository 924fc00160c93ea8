"""Tools that change files: write_file, edit_file, delete_file and move_file."""

from functools import partial
from typing import Annotated

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.lines import line
from duckflow.safety.files.access import Access, PlannedWrite
from duckflow.safety.files.atomic import LARGEST
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.risk import changed_lines
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.arguments import one_to
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.differences import difference_of, split_lines, unified
from duckflow.tools.editing.edits import Edit, apply_edits
from duckflow.tools.editing.text_form import MARK, plain, shape
from duckflow.tools.files.reading import OneFile, namesakes, suggesting
from duckflow.tools.notebooks.words import in_words, is_notebook

MOST_EDITS = 100


class WriteFile(OneFile):
    """Arguments of file_ops.write_file."""

    content: str = Field(description="its whole new content")


class EditFile(OneFile):
    """Arguments of file_ops.edit_file."""

    edits: Annotated[tuple[Edit, ...], one_to(MOST_EDITS)] = Field(
        description="changes, made in this order, all or none", json_schema_extra={"minItems": 1}
    )


class MoveFile(OneFile):
    """Arguments of file_ops.move_file."""

    to: str = Field(description="its new path; nothing may be there yet")


def propose_write(args: WriteFile | EditFile, workspace: Workspace) -> Proposal:
    """Return a file's new content and the diff to show to the user."""
    path = workspace.relative(args.path)
    file, after, notes = _compute(args, workspace, path)
    before = file.text if file else None
    difference = unified(path, before, after)
    lines = changed_lines(difference)
    added = sum(one.startswith("+") for one in lines)
    count = len(split_lines(after))
    others = namesakes(workspace, path) if before is None else []
    if before is None:
        said = f"created {path} ({count} lines)"
        notes = (*notes, f"There is also {', '.join(others)}.") if others else notes
    elif before == after:
        said = f"unchanged {path}: it has this content already"
    else:
        said = f"changed {path} (+{added} -{len(lines) - added}, now {count} lines)"
    data = (file or EncodedText("")).with_text(path, after)
    write = PlannedWrite(path, file.digest if file else None, data, "\n".join([said, *notes]))
    impact = (line("approval.impact.namesakes", paths=", ".join(others)),) if others else ()
    return Proposal(difference, plain(after), impact=impact, write=write)


def _compute(
    args: WriteFile | EditFile, workspace: Workspace, path: str
) -> tuple[EncodedText | None, str, tuple[str, ...]]:
    """Return the current file (None: no file), its new text, and notes about the edits."""
    if isinstance(args, WriteFile):
        file = workspace.read_encoded(path) if workspace.status(path) else None
        if is_notebook(path) and file and in_words(file.text) and in_words(args.content) is None:
            what = f"{path}: would be no notebook any more. Change its cells with file_ops.edit_cell."
            raise ToolError(what, "reason.notebook", path=path)
        return file, shape(args.content, file.text if file else ""), ()
    with suggesting(workspace, path):
        file = workspace.read_encoded(path)
    if is_notebook(path) and in_words(file.text) is not None:
        what = f"{path}: is a notebook. Change its cells with file_ops.edit_cell."
        raise ToolError(what, "reason.notebook", path=path)
    try:
        edited = apply_edits(file.text.removeprefix(MARK), args.edits)
    except ToolError as exc:
        raise exc.reworded(f"{path}: {exc}") from exc
    return file, shape(edited.text, file.text, keep_ends=True), edited.notes


def _write(args: WriteFile | EditFile, access: Access) -> ToolResult:
    new = access.planned or propose_write(args, access.workspace).write
    assert new is not None
    if new.changes:
        access.write_bytes(new.path, new.data, expected=new.before)
    return ToolResult(text=new.summary, path=new.path, changed=(new.path,) if new.changes else ())


def _delete(args: OneFile, access: Access) -> ToolResult:
    path = access.workspace.relative(args.path)
    with suggesting(access.workspace, path):
        access.delete(path)
    return ToolResult(text=f"deleted {path}", path=path, changed=(path,))


def _move(args: MoveFile, access: Access) -> ToolResult:
    workspace = access.workspace
    path, to = _checked_paths(args, workspace)
    with suggesting(workspace, path):
        access.move(path, to)
    return ToolResult(text=f"moved {path} to {to}", path=to, changed=(path, to))


def _propose_move(args: MoveFile, workspace: Workspace) -> Proposal:
    path, to = _checked_paths(args, workspace)
    return Proposal(f"rename from {path}\nrename to {to}\n")


def _checked_paths(args: MoveFile, workspace: Workspace) -> tuple[str, str]:
    path, to = workspace.relative(args.path), workspace.relative(args.to)
    status = workspace.status(to)
    if status is None:
        return path, to
    if status.kind == "folder":
        name = path.rpartition("/")[2]
        raise ToolError(
            f"{to}: is a folder; to move the file into it, write {to}/{name}.", "reason.exists", path=to
        )
    if path == to:
        raise ToolError(f"{to}: is the file itself; there is nothing to move.")
    raise ToolError(
        f"{to}: exists already; nothing was moved. Choose another name, or delete it first.",
        "reason.exists",
        path=to,
    )


def _propose_delete(args: OneFile, workspace: Workspace) -> Proposal:
    path = workspace.relative(args.path)
    removed = difference_of(path, workspace.read_bytes(path, cap=LARGEST), None)
    return Proposal(removed or f"--- a/{path}\n+++ /dev/null\n")


WRITE_FILE = Tool(
    operation="file_ops.write_file",
    args=WriteFile,
    summary="make or replace the file at path with content",
    effect="write",
    run=partial(run_in_thread, _write),
    propose=partial(run_in_thread, propose_write),
    targets=lambda args: (args.path,),
)

EDIT_FILE = Tool(
    operation="file_ops.edit_file",
    args=EditFile,
    summary="change the file at path; edits: {find, replace} each, where find occurs once, or all: true",
    effect="write",
    run=partial(run_in_thread, _write),
    propose=partial(run_in_thread, propose_write),
    targets=lambda args: (args.path,),
)

DELETE_FILE = Tool(
    operation="file_ops.delete_file",
    args=OneFile,
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
