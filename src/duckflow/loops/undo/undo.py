"""Undo of changes, by action or by request, and the diff since then (G8)."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import NamedTuple

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.events import Undone
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import FOLDER, ChangeSet, FileChange, LeftFile, UndoReport, change_of, join
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState, new_state
from duckflow.i18n.catalogue import text
from duckflow.loops.session import SessionPart
from duckflow.loops.undo.differences import Differences
from duckflow.loops.undo.git_history import kept_in_git
from duckflow.safety.files.access import Access
from duckflow.safety.files.path_states import PathState
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.git_index import entries_digest
from duckflow.safety.uncancelled import run_in_thread
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.store.sessions import Sessions

_SEARCHED = 20
"""Number of earlier sessions to search, newest first."""


def earlier_changes(log: SqliteEventLog, workspace: str, state: AgentState) -> Sequence[ChangeSet]:
    """Return the changes of the newest earlier session that has any to undo; ids include that session."""
    undone = set(_covered(state.change_sets))
    others = (one.id for one in Sessions(log.database).listed(workspace) if one.id != state.session_id)
    for session_id in islice(others, _SEARCHED):
        try:
            earlier = reduce(apply, log.load(session_id), new_state(session_id))
        except UserError:
            continue  # this version can't read that session
        named = [
            replace(
                one,
                action_id=f"{session_id}/{one.action_id}",
                request_id=f"{session_id}/{one.request_id}",
                undone=one.undone or f"{session_id}/{one.action_id}" in undone,
            )
            for one in earlier.change_sets
        ]
        if undoable(named):
            return named
        undone |= set(_covered(earlier.change_sets))
    return ()


def undoable(sets: Iterable[ChangeSet]) -> list[ChangeSet]:
    """Return the change sets that changed files and were not undone."""
    return [one for one in sets if one.changes and not one.undone and not one.by_undo]


def _matters(made: ChangeSet) -> bool:
    """Return whether a change set is more than what test runs leave: they write caches but delete none."""
    return any(not is_cache(change.path) or change.after is None for change in made.changes)


def _is_work(path: str) -> bool:
    return not is_cache(path) and ".git" not in path.split("/")


def _covered(sets: Iterable[ChangeSet]) -> Iterable[str]:
    """Return the ids of actions that were undone and not redone."""
    return (name for one in sets if one.operation == "undo" and not one.undone for name in one.takes_back)


_BATCH = 256


@dataclass(eq=False)
class Undo(SessionPart):
    """Undoes changes for the user, not for the model. Each undo is an event that `redo` can undo."""

    _workspace: Workspace
    _kept: KeptFiles
    _log: SqliteEventLog

    async def undo(self, count: int = 1, upto: str | None = None) -> UndoReport:
        """Undo the last `count` actions that changed files, in this session and if needed an earlier one.

        With `upto`, leave the changes after that one as they are.
        """
        known = await self._known(count, upto)
        open_still = undoable(known)
        counted = [one for one in open_still if _matters(one)] or open_still
        first = counted[-count:][:1] if count > 0 else []
        wanted = open_still[open_still.index(first[0]) :] if first else ()
        return await self._take_back(wanted, known)

    async def undo_request(self, upto: str | None = None) -> UndoReport:
        """Undo those changes of the last request that were not undone yet."""
        known = await self._known(upto=upto)
        open_still = undoable(known)
        last = ([one for one in open_still if _matters(one)] or open_still)[-1:]
        wanted = open_still[open_still.index(last[0]) :] if last else []  # caches of later test runs, too
        ids = {one.request_id for one in last}
        earlier = [one for one in open_still if one.request_id in ids and one not in wanted]
        return await self._take_back([*earlier, *wanted], known)

    async def undo_actions(self, ids: Collection[str]) -> UndoReport:
        """Undo those changes of these actions that were not undone yet."""
        own = self._state.change_sets
        return await self._take_back([one for one in undoable(own) if one.action_id in ids], own)

    async def redo(self) -> UndoReport:
        """Undo the last undo."""
        undos = [one for one in self._state.change_sets if one.by_undo and not one.undone]
        if not undos:
            return UndoReport(kind="redo")
        return await self._change_back(undos[-1:], redo=True)

    async def diff(self, *, session: bool = False) -> str:
        """Return the diff of the files since the start of the last request or, if asked, of the session."""
        known = self._state.change_sets if session else await self._known()
        made = [one for one in known if any(_is_work(change.path) for change in one.changes)]
        made = [one for one in made if not one.by_undo]
        if made and not session:
            made = [one for one in made if one.request_id == made[-1].request_id]
        found = await Differences(self._workspace, self._kept).since(made)
        return "".join(difference for path, difference in found.items() if _is_work(path))

    async def _known(self, count: int = 1, upto: str | None = None) -> Sequence[ChangeSet]:
        """Return this session's change sets. If they are too few, those of an earlier session come first."""
        own = self._state.change_sets
        if upto is not None:
            ids = [one.action_id for one in own]
            own = own[: ids.index(upto) + 1] if upto in ids else ()
        if len(undoable(own)) >= count:
            return own
        return (
            *await run_in_thread(earlier_changes, self._log, str(self._workspace.root), self._state),
            *own,
        )

    async def _take_back(self, sets: Sequence[ChangeSet], known: Sequence[ChangeSet]) -> UndoReport:
        if not sets:
            return UndoReport(commands=_commands(known))
        report = await self._change_back(sets, redo=False)
        start = [one.action_id for one in known].index(sets[0].action_id)
        remaining = sum(_matters(one) for one in undoable(await self._known()))
        return replace(report, commands=_commands(known[start:]), remaining=remaining)

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
        found: dict[FileChange, _Step | LeftFile | None] = {}
        for newest_first in by_path.values():
            whole, broken = self._joined(newest_first)
            left += broken
            found[whole] = self._step(whole)
        moved = {one.path for one in (*left, *found.values()) if isinstance(one, LeftFile)}
        kept = kept_in_git(found, moved, self._workspace.paths)
        left = [one for one in left if one.path not in kept.history]
        left += [LeftFile(path=place or ".", reason="built_on") for place in sorted({*kept.history.values()})]
        steps: list[_Step] = []
        for change, step in found.items():
            if change.path in kept.objects or change.path in kept.history:
                continue
            if isinstance(step, LeftFile):
                left.append(step)
            elif step is not None:
                steps.append(step)
        for start in range(0, len(steps), _BATCH):
            left += self._make(steps[start : start + _BATCH], access)
        return tuple(left)

    def _joined(self, newest_first: Sequence[FileChange]) -> tuple[FileChange, list[LeftFile]]:
        """Combine the changes of a path, back to the point where another program changed it."""
        whole, *older = newest_first
        for change in older:
            between = self._kept.content(whole.before) if change.entries and whole.before else None
            same = between is not None and change.entries == entries_digest(change.path, between)
            if change.after != whole.before and not same:
                return whole, [LeftFile(path=change.path, reason="changed")]
            whole = join(change, whole)
        return whole, []

    def _step(self, change: FileChange) -> "_Step | LeftFile | None":
        path = change.path
        try:
            now = self._workspace.paths.now(path)
        except ToolError as error:
            return LeftFile(path=path, reason="failed", detail=_why(error))
        found = now.word if now else None
        if found == change.before and (now is None or change.mode_before in (None, now.mode)):
            return None
        if found != change.after and not (
            now and change.entries and change.entries == entries_digest(path, now.data)
        ):
            return LeftFile(path=path, reason="changed")
        if change.before is None:
            return _Step(path, now, None, change.folders)
        data = b"" if change.before in (FOLDER, found) else self._kept.content(change.before)
        if data is None:
            return LeftFile(path=path, reason="not_kept")
        mode = change.mode_before if change.mode_before is not None else now.mode if now else 0o644
        missing = () if now else self._workspace.paths.missing_folders(path)
        return _Step(path, now, PathState(change.before, mode, data), missing)

    def _make(self, steps: Sequence["_Step"], access: Access) -> Iterable[LeftFile]:
        """Record some restoring steps, then carry them out. Return the files that could not be restored."""
        try:
            changes = [
                replace(
                    change_of(step.path, step.now and step.now[:2], step.wanted and step.wanted[:2]),
                    entries=entries_digest(step.path, step.wanted.data if step.wanted else b""),
                    folders=step.folders if step.wanted else (),
                )
                for step in steps
            ]
            replaced = (step.now for step in steps if step.now is not None and step.now.word != FOLDER)
            access.record(changes, {one.word: one.data for one in replaced})
        except ToolError as error:
            return [LeftFile(path=step.path, reason="failed", detail=_why(error)) for step in steps]
        left: list[LeftFile] = []
        for step in steps:
            try:
                self._workspace.paths.put(step.path, step.wanted, step.now.word if step.now else None)
            except ToolError as error:
                left.append(LeftFile(path=step.path, reason="failed", detail=_why(error)))
                continue
            for folder in reversed(step.folders if step.wanted is None else ()):
                self._workspace.drop_folder(folder)
        return left


def _commands(sets: Iterable[ChangeSet]) -> tuple[str, ...]:
    """Return the commands with unknown effects, which are not undone."""
    return tuple(one.command for one in sets if one.command and not one.exact)


def _why(error: ToolError) -> str:
    """Return why a file was not restored, in the user's language if the catalogue has the reason."""
    return text(error.key, **error.values) if error.key else str(error).rstrip(".")


class _Step(NamedTuple):
    path: str
    now: PathState | None
    wanted: PathState | None
    folders: tuple[str, ...] = ()
    """Folders created with the file. Removing it again removes those that are empty."""
