"""file_ops.write_file and edit_file: new content for a file, whole or in places."""

import hashlib
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

from pydantic import Field, field_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.workspace import Workspace
from duckflow.tools.catalogue import Tool, ToolResult
from duckflow.tools.editing.differences import count_lines, split_lines, unified
from duckflow.tools.editing.edits import Edit, apply_edits
from duckflow.tools.files.suggestions import suggesting
from duckflow.tools.files.text_form import MARK, form_of, plain, shape
from duckflow.tools.threads import finish

MOST_EDITS = 100


class WriteFile(Frozen):
    """What write_file takes."""

    path: str = Field(description="the file, relative to the workspace")
    content: str = Field(description="its whole new content")


class EditFile(Frozen):
    """What edit_file takes."""

    path: str = Field(description="the file, relative to the workspace")
    edits: tuple[Edit, ...] = Field(
        description="changes, made in this order, all or none", json_schema_extra={"minItems": 1}
    )

    @field_validator("edits", mode="before")
    @classmethod
    def _one_is_a_list(cls, value: object) -> object:
        return (cast("object", value),) if isinstance(value, dict) else value

    @field_validator("edits")
    @classmethod
    def _some(cls, value: tuple[Edit, ...]) -> tuple[Edit, ...]:
        if not 1 <= len(value) <= MOST_EDITS:
            raise ValueError(f"must have 1 to {MOST_EDITS} items, not {len(value)}")
        return value


class Change(NamedTuple):
    """What a file will be: its text before (None: no file) and after."""

    path: str
    before: str | None
    after: str
    notes: tuple[str, ...] = ()


Planned = Callable[[Any], Change]


def write_tool(workspace: Workspace) -> Tool:
    """write_file for one workspace."""

    def planned(args: WriteFile) -> Change:
        path = workspace.relative(args.path)
        before = workspace.read_text(path) if workspace.status(path) else None
        return Change(path, before, shape(args.content, form_of(before or "")))

    return Tool(
        operation="file_ops.write_file",
        args=WriteFile,
        summary="make or replace the file at path; content is its whole new text",
        effect="write",
        run=_runs(workspace, planned),
        preview=_previews(planned),
        targets=lambda args: (args.path,),
        proposal=_proposes(planned),
    )


def edit_tool(workspace: Workspace) -> Tool:
    """edit_file for one workspace."""

    def planned(args: EditFile) -> Change:
        path = workspace.relative(args.path)
        with suggesting(workspace, path):
            before = workspace.read_text(path)
        try:
            edited = apply_edits(before.removeprefix(MARK), args.edits)
        except ToolError as exc:
            raise ToolError(f"{path}: {exc}") from exc
        return Change(path, before, shape(edited.text, form_of(before), keep_ends=True), edited.notes)

    return Tool(
        operation="file_ops.edit_file",
        args=EditFile,
        summary="change the file at path; edits is a list of {find, replace}, each find being text that is "
        "in the file once",
        effect="write",
        run=_runs(workspace, planned),
        preview=_previews(planned),
        targets=lambda args: (args.path,),
        proposal=_proposes(planned),
    )


def _runs(workspace: Workspace, planned: Planned) -> Callable[[Any], Awaitable[ToolResult]]:
    def make(args: Frozen) -> ToolResult:
        change = planned(args)
        if change.after != change.before:
            expected = None if change.before is None else hashlib.sha256(change.before.encode()).hexdigest()
            workspace.write_text(change.path, change.after, expected=expected)
        return _report(change)

    async def run(args: Frozen) -> ToolResult:
        return await finish(make, args)

    return run


def _previews(planned: Planned) -> Callable[[Any], Awaitable[str]]:
    def show(args: Frozen) -> str:
        change = planned(args)
        return unified(change.path, change.before, change.after)

    async def preview(args: Frozen) -> str:
        return await finish(show, args)

    return preview


def _proposes(planned: Planned) -> Callable[[Any], Awaitable[str]]:
    async def proposal(args: Frozen) -> str:
        change = await finish(planned, args)
        return plain(change.after)

    return proposal


def _report(change: Change) -> ToolResult:
    path, before, after, notes = change
    count = len(split_lines(after))
    if before == after:
        told = f"unchanged {path}: it has this content already"
    elif before is None:
        told = f"created {path} ({count} lines)"
    else:
        lines = count_lines(before, after)
        told = f"changed {path} (+{lines.added} -{lines.removed}, now {count} lines)"
    changed = () if before == after else (path,)
    return ToolResult(text="\n".join([told, *notes]), path=path, changed=changed)
