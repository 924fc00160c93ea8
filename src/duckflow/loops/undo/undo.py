"""Taking changes back, by action or by request, and showing what has changed (G8)."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import Undone
from duckflow.domain.files.changes import FOLDER, ChangeSet, FileChange, LeftFile, UndoReport, change_of, join
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState
from duckflow.loops.session import Session
from duckflow.loops.undo.differences import Differences
from duckflow.loops.undo.earlier_sessions import EarlierChanges, undoable
from duckflow.safety.files.access import Access
from duckflow.safety.files.path_states import PathState
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.kept_files import ChangeOwner, KeptFiles

_BATCH = 256


class Undo:
    """For the user, not for the model. What it does is an event, and can itself be taken back with `redo`."""

    def __init__(
        self, session: Session, workspace: Workspace, kept: KeptFiles, earlier: EarlierChanges
    ) -> None:
        self._session = session
        self._workspace = workspace
        self._kept = kept
        self._earlier = earlier
        self._differences = Differences(workspace, kept)

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

    async def undo_actions(self, ids: Collection[str]) -> UndoReport:
        """Take back what these actions did to files, as far as that was not done yet."""
        own = self._state.change_sets
        return await self._take_back([one for one in undoable(own) if one.action_id in ids], own)

    async def redo(self) -> UndoReport:
        """Take back the last undo."""
        undos = [one for one in self._state.change_sets if one.by_undo and not one.undone]
        if not undos:
            return UndoReport(kind="redo")
        return await self._change_back(undos[-1:], redo=True)

    async def diff(self, *, session: bool = False) -> str:
        """What differs between the files before the last request, or the session, and now."""
        known = self._state.change_sets if session else await self._known()
        made = [one for one in known if one.changes and not one.by_undo]
        if made and not session:
            made = [one for one in made if one.request_id == made[-1].request_id]
        return "".join((await self._differences.since(made)).values())

    async def _known(self, count: int = 1) -> Sequence[ChangeSet]:
        """This session's change sets; if they are not enough, those of an earlier session before them."""
        own = self._state.change_sets
        if len(undoable(own)) >= count:
            return own
        return (*await run_in_thread(self._earlier.find, self._state), *own)

    async def _take_back(self, sets: Sequence[ChangeSet], known: Sequence[ChangeSet]) -> UndoReport:
        if not sets:
            return UndoReport(commands=_commands_since(known[:1], known))
        report = await self._change_back(sets, redo=False)
        covered = {change.path for one in sets if one.command for change in one.changes}
        restored = tuple(dict.fromkeys(change.path for change in report.restored if change.path in covered))
        return replace(report, commands=_commands_since(sets, known), covered=restored)

    async def _change_back(self, sets: Sequence[ChangeSet], *, redo: bool) -> UndoReport:
        state = self._state
        if state.running or state.task_running or state.background_runs or state.background_commands:
            raise UserError("undo.busy")
        undo_id = f"u{self._state.seq + 1}"
        access = Access(self._workspace, self._kept, ChangeOwner(self._state.session_id, undo_id, undo_id))
        left = await run_in_thread(self._restore_all, sets, access)
        self._session.record(*self._kept.take_notices())
        changes = await run_in_thread(self._workspace.paths.made_of, access.changes)
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
        left: list[LeftFile] = []
        steps: list[_Step] = []
        for newest_first in by_path.values():
            whole, broken = _joined(newest_first)
            left += broken
            step = self._step(whole)
            if isinstance(step, LeftFile):
                left.append(step)
            elif step is not None:
                steps.append(step)
        for start in range(0, len(steps), _BATCH):
            left += self._make(steps[start : start + _BATCH], access)
        return tuple(left)

    def _step(self, change: FileChange) -> "_Step | LeftFile | None":
        """How to put a path back to what it was before a change; None if it is as it was already."""
        path = change.path
        try:
            now = self._workspace.paths.now(path)
        except ToolError as error:
            return LeftFile(path=path, reason="failed", detail=str(error))
        found = now.word if now else None
        if found == change.before and (now is None or change.mode_before in (None, now.mode)):
            return None
        if found != change.after:
            return LeftFile(path=path, reason="changed")
        if change.before is None:
            return _Step(path, now, None, change.folders)
        data = b"" if change.before in (FOLDER, found) else self._kept.content(change.before)
        if data is None:
            return LeftFile(path=path, reason="not_kept")
        mode = change.mode_before if change.mode_before is not None else now.mode if now else 0o644
        return _Step(path, now, PathState(change.before, mode, data))

    def _make(self, steps: Sequence["_Step"], access: Access) -> Iterable[LeftFile]:
        """Write down some steps at once, then make them."""
        try:
            access.record([step.change for step in steps], {one.word: one.data for one in _contents(steps)})
        except ToolError as error:
            return [LeftFile(path=step.path, reason="failed", detail=str(error)) for step in steps]
        left: list[LeftFile] = []
        for step in steps:
            try:
                self._workspace.paths.put(step.path, step.wanted, step.now.word if step.now else None)
            except ToolError as error:
                left.append(LeftFile(path=step.path, reason="failed", detail=str(error)))
                continue
            for folder in reversed(step.folders):
                self._workspace.drop_folder(folder)
        return left


def _commands_since(sets: Sequence[ChangeSet], known: Sequence[ChangeSet]) -> tuple[str, ...]:
    """The commands that ran since the first of these; what they did beyond known files is not undone."""
    if not sets:
        return ()
    start = [one.action_id for one in known].index(sets[0].action_id)
    return tuple(one.command for one in known[start:] if one.command and not one.exact)


class _Step(NamedTuple):
    """One path to be put back."""

    path: str
    now: PathState | None
    wanted: PathState | None
    folders: tuple[str, ...] = ()
    """Folders that were made for it, and go with it if they are empty."""

    @property
    def change(self) -> FileChange:
        """What it does, as it is written down."""
        return change_of(self.path, self.now and self.now[:2], self.wanted and self.wanted[:2])


def _contents(steps: Iterable[_Step]) -> Iterator[PathState]:
    """What the steps do away with, and redo needs."""
    for step in steps:
        if step.now is not None and step.now.word != FOLDER:
            yield step.now


def _joined(newest_first: Sequence[FileChange]) -> tuple[FileChange, list[LeftFile]]:
    """The changes of a path as one, as far back as no one else's change came between them."""
    whole, *older = newest_first
    for change in older:
        if change.after != whole.before:
            return whole, [LeftFile(path=change.path, reason="changed")]
        whole = join(change, whole)
    return whole, []
