"""Tools file_ops.write_file and file_ops.edit_file: new content for a file, whole or in places."""

from functools import partial
from typing import Annotated, NamedTuple, cast

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.arguments import one_to
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.editing.differences import count_lines, split_lines, unified
from duckflow.tools.editing.edits import Edit, apply_edits
from duckflow.tools.editing.text_form import MARK, plain, shape
from duckflow.tools.files.suggestions import suggesting

MOST_EDITS = 100


class WriteFile(Frozen):
    """Arguments of file_ops.write_file."""

    path: str = Field(description="the file, relative to the workspace")
    content: str = Field(description="its whole new content")


class EditFile(Frozen):
    """Arguments of file_ops.edit_file."""

    path: str = Field(description="the file, relative to the workspace")
    edits: Annotated[tuple[Edit, ...], one_to(MOST_EDITS)] = Field(
        description="changes, made in this order, all or none", json_schema_extra={"minItems": 1}
    )

    @field_validator("edits", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (cast("object", value),) if isinstance(value, dict) else value


class _NewText(NamedTuple):
    """Planned content of a file: the current file (None: no file), and its new text in the same encoding."""

    path: str
    file: EncodedText | None
    after: str
    notes: tuple[str, ...] = ()

    @property
    def before(self) -> str | None:
        """Current text of the file."""
        return self.file.text if self.file else None

    @property
    def data(self) -> bytes:
        """Bytes to write."""
        return (self.file or EncodedText("")).with_text(self.path, self.after)


Writing = WriteFile | EditFile


def _plan(args: Writing, workspace: Workspace) -> _NewText:
    path = workspace.relative(args.path)
    return _write(args, workspace, path) if isinstance(args, WriteFile) else _edit(args, workspace, path)


def _write(args: WriteFile, workspace: Workspace, path: str) -> _NewText:
    file = workspace.read_encoded(path) if workspace.status(path) else None
    return _NewText(path, file, shape(args.content, file.text if file else ""))


def _edit(args: EditFile, workspace: Workspace, path: str) -> _NewText:
    with suggesting(workspace, path):
        file = workspace.read_encoded(path)
    try:
        edited = apply_edits(file.text.removeprefix(MARK), args.edits)
    except ToolError as exc:
        raise ToolError(f"{path}: {exc}") from exc
    return _NewText(path, file, shape(edited.text, file.text, keep_ends=True), edited.notes)


def _make(args: Writing, access: Access) -> ToolResult:
    new = _plan(args, access.workspace)
    if new.after != new.before:
        access.write_bytes(new.path, new.data, expected=new.file.digest if new.file else None)
    return _report(new)


def _propose(args: Writing, workspace: Workspace) -> Proposal:
    new = _plan(args, workspace)
    _ = new.data  # fails before the user is asked if the file's encoding lacks a character
    return Proposal(unified(new.path, new.before, new.after), plain(new.after))


def _report(new: _NewText) -> ToolResult:
    path, before, after, notes = new.path, new.before, new.after, new.notes
    count = len(split_lines(after))
    if before == after:
        told = f"unchanged {path}: it has this content already"
    elif before is None:
        told = f"created {path} ({count} lines)"
    else:
        added, removed = count_lines(before, after)
        told = f"changed {path} (+{added} -{removed}, now {count} lines)"
    changed = () if before == after else (path,)
    return ToolResult(text="\n".join([told, *notes]), path=path, changed=changed)


WRITE_FILE = Tool(
    operation="file_ops.write_file",
    args=WriteFile,
    summary="make or replace the file at path with content",
    effect="write",
    run=partial(run_in_thread, _make),
    propose=partial(run_in_thread, _propose),
    targets=lambda args: (args.path,),
)

EDIT_FILE = Tool(
    operation="file_ops.edit_file",
    args=EditFile,
    summary="change the file at path; edits: {find, replace} each, where find occurs once, or all: true",
    effect="write",
    run=partial(run_in_thread, _make),
    propose=partial(run_in_thread, _propose),
    targets=lambda args: (args.path,),
)
