"""Undo of changes, by action or by request, and the diff since then (G8)."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import Literal, NamedTuple

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
from duckflow.tools.editing.differences import difference_of

_SEARCHED = 20
"""Number of earlier sessions to search, newest first."""


def earlier_changes(
    log: SqliteEventLog, workspace: str, state: AgentState, gone: Collection[str] = ()
) -> Sequence[ChangeSet]:
    """Return the changes of the newest earlier session that has any to undo; ids include that session.

    Those in `gone` count as undone.
    """
    undone = {*_covered(state.change_sets), *gone}
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


def _after_stop(sets: Iterable[ChangeSet]) -> int:
    """Return how many actions came after the user's last stop; 0 if none or all of them did."""
    stops = [one.stops for one in sets if _matters(one)]
    after = stops.count(max(stops, default=0))
    return after if after < len(stops) else 0


def _is_work(path: str) -> bool:
    return not is_cache(path) and ".git" not in path.split("/")


def _covered(sets: Iterable[ChangeSet]) -> Iterable[str]:
    """Return the ids of actions that were undone and not redone."""
    return (name for one in sets if one.operation == "undo" and not one.undone for name in one.takes_back)


_BATCH = 256


class PlannedUndo(NamedTuple):
    """Change sets that an undo would restore, and all known ones in order."""

    sets: Sequence[ChangeSet]
    known: Sequence[ChangeSet]
    redo: bool = False
    after_stop: int = 0
    """If the user had stopped the request in between: number of actions after the last stop."""


@dataclass(eq=False)
class Undo(SessionPart):
    """Undoes changes, for the user or at the user's wish. Each undo is an event that `redo` can undo."""

    _workspace: Workspace
    _kept: KeptFiles
    _log: SqliteEventLog

    async def undo(self, count: int = 1, upto: str | None = None) -> UndoReport:
        """Undo the last `count` actions that changed files, in this session and if needed an earlier one.

        With `upto`, leave the changes after that one as they are.
        """
        return await self._carry_out(await run_in_thread(self.last_actions, count, upto))

    async def undo_request(self, upto: str | None = None) -> UndoReport:
        """Undo those changes of the last request that were not undone yet."""
        return await self._carry_out(await run_in_thread(self.last_request, upto))

    async def undo_actions(self, ids: Collection[str]) -> UndoReport:
        """Undo those changes of these actions that were not undone yet."""
        own = self._state.change_sets
        return await self._carry_out(PlannedUndo([one for one in undoable(own) if one.action_id in ids], own))

    async def redo(self) -> UndoReport:
        """Undo the last undo."""
        return await self._carry_out(self.last_undo())

    def last_actions(self, count: int, upto: str | None = None) -> PlannedUndo:
        """Return the last `count` actions that changed files. Blocking."""
        known = self._known(count, upto)
        open_still = undoable(known)
        counted = [one for one in open_still if _matters(one)] or open_still
        first = counted[-count:][:1] if count > 0 else []
        return PlannedUndo(open_still[open_still.index(first[0]) :] if first else (), known)

    def last_request(self, upto: str | None = None) -> PlannedUndo:
        """Return the changes of the last request that changed files. Blocking."""
        known = self._known(upto=upto)
        open_still = undoable(known)
        last = ([one for one in open_still if _matters(one)] or open_still)[-1:]
        wanted = open_still[open_still.index(last[0]) :] if last else []  # caches of later test runs, too
        ids = {one.request_id for one in last}
        earlier = [one for one in open_still if one.request_id in ids and one not in wanted]
        return PlannedUndo([*earlier, *wanted], known, after_stop=_after_stop([*earlier, *wanted]))

    def last_undo(self) -> PlannedUndo:
        """Return the last undo that was not redone."""
        own = self._state.change_sets
        undos = [one for one in own if one.by_undo and not one.undone]
        return PlannedUndo(undos[-1:], own, redo=True)

    async def diff(self, *, session: bool = False) -> str:
        """Return the diff of the files since the start of the last request or, if asked, of the session."""
        known = self._state.change_sets if session else await run_in_thread(self._known)
        made = [one for one in known if any(_is_work(change.path) for change in one.changes)]
        made = [one for one in made if not one.by_undo]
        if made and not session:
            made = [one for one in made if one.request_id == made[-1].request_id]
        found = await Differences(self._workspace, self._kept).since(made)
        return "".join(difference for path, difference in found.items() if _is_work(path))

    def preview(self, planned: PlannedUndo) -> Mapping[str, str]:
        """Return the diff of each path that an undo would change now. Blocking."""
        steps, _ = self._steps(planned.sets)
        return {step.path: _difference(step) for step in steps}

    def _known(self, count: int = 1, upto: str | None = None) -> Sequence[ChangeSet]:
        """Return this session's change sets. If they are too few, those of an earlier session come first."""
        own = self._state.change_sets
        if upto is not None:
            ids = [one.action_id for one in own]
            own = own[: ids.index(upto) + 1] if upto in ids else ()
        if len(undoable(own)) >= count:
            return own
        return (*self._earlier(), *own)

    def _earlier(self, gone: Collection[str] = ()) -> Sequence[ChangeSet]:
        return earlier_changes(self._log, str(self._workspace.root), self._state, gone)

    async def _carry_out(self, planned: PlannedUndo) -> UndoReport:
        state = self._state
        if planned.sets and state.running:
            raise UserError("undo.busy")
        report, undone = await self.perform(planned)
        if undone is not None:
            self._session.record(undone)
        return report

    async def perform(self, planned: PlannedUndo, action_id: str = "") -> tuple[UndoReport, Undone | None]:
        """Restore the files. Return the report, and the event to record if anything was done.

        `action_id` is that of the model's action which does it.
        """
        sets, known, redo, after_stop = planned
        kind: Literal["undo", "redo"] = "redo" if redo else "undo"
        if not sets:
            return UndoReport(kind=kind, commands=() if redo else _commands(known)), None
        state = self._state
        if state.task_running or state.background_runs or state.background_commands:
            raise UserError("undo.busy")
        undo_id = f"u{state.seq + 1}"
        access = Access(self._workspace, self._kept, ChangeOwner(state.session_id, undo_id, undo_id))
        left = await run_in_thread(self._restore_all, sets, access)
        self._session.record(*self._kept.take_notices())
        changes = await run_in_thread(self._workspace.paths.made_of, access.changes)
        broken = any(one.reason == "failed" for one in left)
        ids = () if broken else tuple(one.action_id for one in sets)
        report = UndoReport(kind=kind, actions=len(sets), restored=changes, left=left)
        if not redo:
            start = [one.action_id for one in known].index(sets[0].action_id)
            report = replace(
                report,
                commands=_commands(known[start:]),
                remaining=await run_in_thread(self._remaining, ids),
                after_stop=after_stop,
            )
        if broken and not changes:
            return report, None
        return report, Undone(
            undo_id=undo_id,
            takes_back=ids,
            changes=changes,
            left=left,
            redo=redo,
            commands=report.commands,
            remaining=report.remaining,
            after_stop=report.after_stop,
            action_id=action_id,
        )

    def _remaining(self, gone: Collection[str]) -> int:
        """Return how many actions can still be undone once those in `gone` are."""
        own = [one for one in undoable(self._state.change_sets) if one.action_id not in gone]
        left = own or [one for one in undoable(self._earlier(gone)) if one.action_id not in gone]
        return sum(_matters(one) for one in left)

    def _restore_all(self, sets: Sequence[ChangeSet], access: Access) -> tuple[LeftFile, ...]:
        steps, left = self._steps(sets)
        for start in range(0, len(steps), _BATCH):
            left += self._make(steps[start : start + _BATCH], access)
        return tuple(left)

    def _steps(self, sets: Sequence[ChangeSet]) -> tuple[list["_Step"], list[LeftFile]]:
        """Return the steps that restore the files, and the files that must be left as they are."""
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
        return steps, left

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


def _difference(step: _Step) -> str:
    now, wanted = (None if one is None or one.word == FOLDER else one.data for one in (step.now, step.wanted))
    return difference_of(step.path, now, wanted)
