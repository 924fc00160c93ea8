"""Taking changes back, by action or by request, and showing what has changed (SPEC G8)."""

from collections.abc import Iterable, Sequence
from typing import Literal

from duckflow.domain.changes import ChangeSet, FileChange, LeftFile, UndoReport
from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import Undone
from duckflow.domain.state import AgentState
from duckflow.loops.session import Session
from duckflow.loops.undo.earlier import EarlierChanges, undoable
from duckflow.safety.files.access import Access
from duckflow.safety.files.ledger import made_of
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import KeptFiles, Mark
from duckflow.tools.editing.differences import unified
from duckflow.tools.threads import finish

DiffScope = Literal["request", "session"]


class Undo:
    """For the user, not for the model. What it does is an event, and can itself be taken back with `redo`."""

    def __init__(
        self, session: Session, workspace: Workspace, kept: KeptFiles, earlier: EarlierChanges
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._kept = kept
        self._earlier = earlier

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def undo(self, count: int = 1) -> UndoReport:
        """Take back the last `count` actions that changed files, of this session and the one before."""
        known = await self._known(count)
        return await self._take_back(undoable(known)[-count:] if count > 0 else (), known)

    async def undo_request(self) -> UndoReport:
        """Take back all that the last request did to files, as far as that was not done yet."""
        known = await self._known()
        open_still = undoable(known)
        last = open_still[-1].request_id if open_still else ""
        return await self._take_back([one for one in open_still if one.request_id == last], known)

    async def redo(self) -> UndoReport:
        """Take back the last undo."""
        undos = [one for one in self._state.change_sets if one.by_undo and not one.undone]
        if not undos:
            return UndoReport(kind="redo")
        return await self._change_back(undos[-1:], redo=True)

    async def diff(self, scope: DiffScope = "request") -> str:
        """What differs between the files before the last request, or the session, and now."""
        known = await self._known() if scope == "request" else self._state.change_sets
        made = [one for one in known if one.changes and not one.by_undo]
        if scope == "request" and made:
            made = [one for one in made if one.request_id == made[-1].request_id]
        first: dict[str, FileChange] = {}
        for change in (change for one in made for change in one.changes):
            first.setdefault(change.path, change)
        return await finish(self._differences, first.values())

    async def _known(self, count: int = 1) -> Sequence[ChangeSet]:
        """This session's change sets; if they are not enough, those of an earlier session before them."""
        own = self._state.change_sets
        if len(undoable(own)) >= count:
            return own
        return (*await finish(self._earlier.find, self._state), *own)

    async def _take_back(self, sets: Sequence[ChangeSet], known: Sequence[ChangeSet]) -> UndoReport:
        if not sets:
            return UndoReport(commands=_commands_since(known[:1], known))
        report = await self._change_back(sets, redo=False)
        covered = {change.path for one in sets if one.command for change in one.changes}
        restored = tuple(dict.fromkeys(change.path for change in report.restored if change.path in covered))
        return UndoReport(
            kind=report.kind,
            actions=report.actions,
            restored=report.restored,
            left=report.left,
            commands=_commands_since(sets, known),
            covered=restored,
        )

    async def _change_back(self, sets: Sequence[ChangeSet], *, redo: bool) -> UndoReport:
        if self._state.running or self._state.task_running or self._state.background_runs:
            raise UserError("undo.busy")
        undo_id = f"u{self._state.seq + 1}"
        access = Access(self._workspace, self._kept, Mark(self._state.session_id, undo_id, undo_id))
        left = await finish(self._restore_all, sets, access)
        self._session.record(*self._kept.take_notices())
        changes = await finish(made_of, self._workspace, access.changes)
        broken = any(one.reason == "failed" for one in left)
        if changes or not broken:
            ids = () if broken else tuple(one.action_id for one in sets)
            self._session.record(
                Undone(undo_id=undo_id, takes_back=ids, changes=changes, left=left, redo=redo)
            )
        return UndoReport(kind="redo" if redo else "undo", actions=len(sets), restored=changes, left=left)

    def _restore_all(self, sets: Sequence[ChangeSet], access: Access) -> tuple[LeftFile, ...]:
        by_path: dict[str, list[FileChange]] = {}
        for one in reversed(sets):
            for change in reversed(one.changes):
                by_path.setdefault(change.path, []).append(change)
        return tuple(
            left for newest_first in by_path.values() for left in self._restore_file(newest_first, access)
        )

    def _restore_file(self, newest_first: Sequence[FileChange], access: Access) -> Iterable[LeftFile]:
        """Put a file back to what it was before the oldest change that no one else's change came after."""
        whole, *older = newest_first
        for change in older:
            if change.after != whole.before:
                yield LeftFile(path=change.path, reason="changed")
                break
            whole = _joined(change, whole)
        try:
            left = self._restore(whole, access)
        except ToolError as error:
            left = LeftFile(path=whole.path, reason="failed", detail=str(error))
        if left is not None:
            yield left

    def _restore(self, change: FileChange, access: Access) -> LeftFile | None:
        now = access.workspace.look(change.path)
        found = now.digest if now else None
        if found == change.before and (now is None or change.mode_before in (None, now.mode)):
            return None  # it is as it was already
        if found != change.after:
            return LeftFile(path=change.path, reason="changed")
        if change.before is None:
            access.delete(change.path, expected=change.after)
            for folder in reversed(change.folders):
                access.workspace.drop_folder(folder)
            return None
        data = self._kept.content(change.before)
        if data is None:
            return LeftFile(path=change.path, reason="not_kept")
        access.write_bytes(change.path, data, expected=change.after, mode=change.mode_before)
        return None

    def _differences(self, first: Iterable[FileChange]) -> str:
        return "".join(self._difference(change) for change in first)

    def _difference(self, change: FileChange) -> str:
        path = change.path
        try:
            now = self._workspace.look(path)
        except ToolError as error:
            return f"{error}\n"
        if (now.digest if now else None) == change.before:
            return ""
        before = self._kept.content(change.before) if change.before else None
        if change.before and before is None:
            return f"--- a/{path}\n+++ b/{path}\n(the content before is not kept any more)\n"
        texts = _text(before), _text(now.data if now else None)
        if "\0" in (texts[0] or "") or "\0" in (texts[1] or ""):
            return f"Binary files a/{path} and b/{path} differ\n"
        return unified(path, *texts)


def _commands_since(sets: Sequence[ChangeSet], known: Sequence[ChangeSet]) -> tuple[str, ...]:
    """The commands that ran since the first of these; what they did beyond known files is not undone."""
    if not sets:
        return ()
    start = [one.action_id for one in known].index(sets[0].action_id)
    return tuple(one.command for one in known[start:] if one.command)


def _joined(older: FileChange, newer: FileChange) -> FileChange:
    """Two changes that follow each other as one."""
    folders = tuple(dict.fromkeys((*older.folders, *newer.folders)))
    return FileChange(
        path=older.path,
        before=older.before,
        after=newer.after,
        mode_before=older.mode_before,
        mode_after=newer.mode_after,
        folders=folders,
    )


def _text(data: bytes | None) -> str | None:
    """The content as text; what is none becomes one NUL."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return "\0"
