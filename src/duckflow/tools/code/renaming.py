"""Renames: a server's edit becomes one approved change of all files, which can be undone as one (O5)."""

import difflib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, cast

from duckflow.domain.errors import ToolError
from duckflow.safety.files.access import Access, PlannedWrite
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Proposal, ToolResult
from duckflow.tools.code.arguments import MOST_FILES, ApplyRename, RenamedFile, Replacement
from duckflow.tools.code.documents import outside_path, path_of
from duckflow.tools.code.session import ServerSession
from duckflow.tools.editing.differences import split_lines, unified
from duckflow.tools.editing.text_form import MARK

_UNREADABLE = "The server's answer to the rename can't be read."
_WHOLE = 400
"""Length of a replacement in characters from which on only its changed lines are kept."""


class _FileEdit(NamedTuple):
    path: str
    edits: tuple[Any, ...] = ()
    to: str = ""


def misread_files(session: ServerSession, workspace: Workspace, edit: object) -> list[str]:
    """Return files of an edit that a server misreads on the disk: with a mark, or not in UTF-8. Blocking."""
    closed = [one.path for one in _merged(_read_edit(workspace, edit)) if session.text(one.path) is None]
    files = {path: workspace.read_encoded(path) for path in closed}
    return [path for path, file in files.items() if file.codec != "utf-8" or file.text.startswith(MARK)]


async def plan_rename(
    session: ServerSession, workspace: Workspace, edit: object, names: tuple[str, str]
) -> tuple[RenamedFile, ...]:
    """Return what a server's edit changes. Raise ToolError if it reaches outside or does anything else."""
    found = _merged(_read_edit(workspace, edit))
    if len(found) > MOST_FILES:
        raise ToolError(f"This rename changes {len(found)} files, {MOST_FILES} at most are possible.")
    try:
        files = [await run_in_thread(_plan_file, session, workspace, one, names) for one in found]
    except (LookupError, TypeError, ValueError, OverflowError) as exc:
        raise ToolError(_UNREADABLE) from exc
    return tuple(one for one in files if one.replacements or one.to)


def _plan_file(
    session: ServerSession, workspace: Workspace, one: _FileEdit, names: tuple[str, str]
) -> RenamedFile:
    file = workspace.read_encoded(one.path)
    text = file.text.removeprefix(MARK)
    known = session.text(one.path)
    if known is not None and known != text:
        raise ToolError(f"{one.path}: changed while the server looked at it; try again.")
    positions = session.positions(text)
    replacements: list[Replacement] = []
    for edit in one.edits:
        span, new = positions.span(edit["range"]), str(edit["newText"])
        if span.start == 0:  # a server that read the file itself may give back its mark, which the file keeps
            new = new.removeprefix(MARK)
        if new == names[1] and names[0] not in text[span.start : span.end]:
            raise ToolError(
                f"{one.path}: the server sees another text than the file has; nothing was renamed."
            )
        replacements += _smallest(text, Replacement(start=span.start, end=span.end, text=new))
    replacements.sort(key=lambda each: (each.start, each.end))
    ends = [0, *(each.end for each in replacements)]
    if any(each.start < end or each.end < each.start for each, end in zip(replacements, ends, strict=False)):
        raise ToolError(f"{one.path}: the server's changes overlap; rename it with file_ops.edit_file.")
    return RenamedFile(path=one.path, before=file.digest, replacements=tuple(replacements), to=one.to)


def _smallest(text: str, one: Replacement) -> Iterator[Replacement]:
    """Yield the lines that a replacement changes, because some servers replace the whole file."""
    if len(one.text) < _WHOLE:
        yield one
        return
    old, new = split_lines(text[one.start : one.end]), split_lines(one.text)
    starts = [one.start]
    for line in old:
        starts.append(starts[-1] + len(line))
    for kind, first, last, other, upto in difflib.SequenceMatcher(None, old, new, False).get_opcodes():
        if kind != "equal":
            said = "".join(new[other:upto])
            yield Replacement(start=starts[first], end=starts[last], text=said)


def _read_edit(workspace: Workspace, edit: object) -> Iterator[_FileEdit]:
    said = cast("dict[str, Any]", edit) if isinstance(edit, dict) else {}
    changes = said.get("documentChanges")
    try:
        if isinstance(changes, list):
            for one in cast("list[dict[str, Any]]", changes):
                yield _document_change(workspace, one)
            return
        listed = cast("dict[str, list[Any]]", said.get("changes") or {})
        for uri, edits in listed.items():
            yield _FileEdit(_inside(workspace, uri), tuple(edits))
    except (KeyError, TypeError, AttributeError) as exc:
        raise ToolError(_UNREADABLE) from exc


def _document_change(workspace: Workspace, one: dict[str, Any]) -> _FileEdit:
    kind = one.get("kind")
    if kind == "rename":
        return _FileEdit(_inside(workspace, one["oldUri"]), to=_inside(workspace, one["newUri"]))
    if kind is not None:
        raise ToolError(f"The server wants to {str(kind)[:20]} a file, which a rename does not do here.")
    return _FileEdit(_inside(workspace, one["textDocument"]["uri"]), tuple(one["edits"]))


def _inside(workspace: Workspace, uri: str) -> str:
    path = path_of(workspace.root, uri)
    if path is None:
        place = outside_path(uri) or uri
        raise ToolError(f"This rename would change {place[:300]}, which is outside the folder; not done.")
    return workspace.relative(path)


def _merged(found: Iterator[_FileEdit]) -> list[_FileEdit]:
    """Join what concerns one file: its edits, and its move, after which it has the new name."""
    files: dict[str, _FileEdit] = {}
    moved: dict[str, str] = {}
    for one in found:
        path = moved.get(one.path, one.path)
        known = files.get(path, _FileEdit(path))
        files[path] = _FileEdit(path, (*known.edits, *one.edits), one.to or known.to)
        if one.to:
            moved[one.to] = path
    return list(files.values())


def _changed_text(file: EncodedText, one: RenamedFile) -> str:
    mark = len(file.text) - len(file.text.removeprefix(MARK))
    parts: list[str] = []
    upto = 0
    for each in one.replacements:
        parts += [file.text[upto : each.start + mark], each.text]
        upto = each.end + mark
    return "".join([*parts, file.text[upto:]])


def _plan(workspace: Workspace, one: RenamedFile) -> tuple[PlannedWrite, str]:
    """Return the new content of a file and its diff. Raise ChangedMeanwhile if it is not as it was."""
    file = workspace.read_encoded(one.path)
    if file.digest != one.before:
        raise ChangedMeanwhile(f"{one.path}: changed since the rename was worked out; nothing was changed.")
    if one.to and workspace.status(one.to) is not None:
        raise ToolError(f"{one.to}: exists already; nothing was renamed.", "reason.exists", path=one.to)
    text = _changed_text(file, one)
    moved = f"rename from {one.path}\nrename to {one.to}\n" if one.to else ""
    write = PlannedWrite(one.path, one.before, file.with_text(one.path, text), "")
    return write, moved + unified(one.path, file.text, text)


def propose_rename(args: ApplyRename, workspace: Workspace) -> Proposal:
    """Return the diff of all files of a rename. Blocking."""
    plans = [_plan(workspace, one) for one in args.files]
    moved = [
        write._replace(path=one.to, before=None)
        for one, (write, _) in zip(args.files, plans, strict=True)
        if one.to
    ]
    return Proposal("".join(shown for _, shown in plans), writes=(*(write for write, _ in plans), *moved))


def apply_rename(args: ApplyRename, access: Access) -> ToolResult:
    """Write all files of a rename, or none. Blocking."""
    plans = [_plan(access.workspace, one)[0] for one in args.files]
    done: list[tuple[RenamedFile, bytes]] = []
    try:
        for one, write in zip(args.files, plans, strict=True):
            data = access.workspace.read_bytes(one.path)
            done.append((one, data))
            if one.to:
                status = access.workspace.look(one.path)
                access.write_bytes(one.to, write.data, expected=None, mode=status.mode if status else None)
                access.delete(one.path, expected=one.before)
            elif write.changes:
                access.write_bytes(one.path, write.data, expected=one.before)
    except ToolError:
        _take_back(access.workspace, done)
        raise
    changed = tuple(path for one in args.files for path in (one.path, one.to) if path)
    places = sum(len(one.replacements) for one in args.files)
    return ToolResult(text=f"renamed to {args.to}: {places} places in {', '.join(changed)}", changed=changed)


def _take_back(workspace: Workspace, done: Sequence[tuple[RenamedFile, bytes]]) -> None:
    """Undo a part of a rename, so that no half of it stays."""
    for one, data in reversed(done):
        with suppress(ToolError):
            if workspace.digest(one.path) != one.before:
                workspace.write_bytes(one.path, data)
        with suppress(ToolError):
            if one.to:
                workspace.delete(one.to)
