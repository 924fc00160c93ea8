"""Operation changes.undo: the exact undo of the journal, for a user who asks for it in words (G8)."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import Field

from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line
from duckflow.domain.state import AgentState
from duckflow.domain.text import head_and_tail
from duckflow.domain.wishes import asks_to_undo
from duckflow.loops.undo.undo import PlannedUndo, Undo
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.plans.plan_search import StateOwner

UNDO = "changes.undo"

_DIFFERENCE = 6_000
"""Largest number of characters of the diff to tell the model."""
_NAMED = 20
_EARLIER = (
    "These changes were made in an earlier conversation, and the user's words do not plainly ask for this. "
    "Tell them that /undo takes them back."
)


class UndoChanges(Frozen):
    """Arguments of changes.undo."""

    last: int | None = Field(default=None, ge=1, le=100, description="only so many last changes")
    redo: bool = Field(default=False, description="bring back what was undone last")


def undo_tools(session: StateOwner, undoing: Undo) -> tuple[Tool[Any], ...]:
    """Return the tool with which the model undoes changes as `/undo` does."""

    def plan(args: UndoChanges) -> PlannedUndo:
        if args.redo:
            return undoing.last_undo()
        return undoing.last_request() if args.last is None else undoing.last_actions(args.last)

    def targets(args: UndoChanges) -> tuple[str, ...]:
        # Every path of the change sets, because the policy judges them before any content is read.
        sets = plan(args).sets
        paths = dict.fromkeys(change.path for one in sets for change in one.changes)
        return tuple(path for path in paths if not is_cache(path))

    async def propose(args: UndoChanges, _workspace: Workspace) -> Proposal:
        planned, state = await run_in_thread(plan, args), session.state
        wished = _is_wished(args, state)
        known = {one.action_id for one in state.change_sets}
        if state.mode != "ask" and not wished and any(one.action_id not in known for one in planned.sets):
            raise ToolError(_EARLIER)
        found = await run_in_thread(undoing.preview, planned)
        return Proposal(
            _shown(found), impact=tuple(_impact(args, found, planned.after_stop)), granted=wished, undoes=True
        )

    async def run(args: UndoChanges, access: Access) -> ToolResult:
        planned = await run_in_thread(plan, args)
        found = await run_in_thread(undoing.preview, planned)
        try:
            report, undone = await undoing.perform(planned, access.owner.action_id)
        except UserError as exc:
            raise ToolError("Something still runs in the background. Stop it first, then undo.") from exc
        if undone is None:
            raise ToolError("\n".join(_told(report, {})))
        return ToolResult(
            text="\n".join(_told(report, found)),
            changed=tuple(dict.fromkeys(change.path for change in report.restored)),
            events=(undone,),
        )

    return (
        Tool(
            operation=UNDO,
            args=UndoChanges,
            summary="when the user wants changes undone: restores exactly, as /undo does, what the last "
            "request changed (this one, if it has changed anything); last or redo do otherwise",
            effect="write",
            run=run,
            propose=propose,
            targets=targets,
        ),
    )


def _is_wished(args: UndoChanges, state: AgentState) -> bool:
    """Return whether the user's last words plainly ask for this, so that it needs no question."""
    said = next((entry.text for entry in reversed(state.transcript) if entry.said), "")
    return not args.redo and args.last in (None, 1) and asks_to_undo(said.partition("\n\n")[0])


def _shown(found: Mapping[str, str]) -> str:
    """Return the diff of the files. Git's own records and caches are not shown, only counted."""
    shown = [path for path in found if not _is_gits(path) and not is_cache(path)]
    return "".join(found[path] or f"({printable(path)})\n" for path in shown)


def _is_gits(path: str) -> bool:
    return ".git" in path.split("/")


def _impact(args: UndoChanges, found: Mapping[str, str], after_stop: int) -> Iterator[TextLine]:
    paths = [path for path in found if not _is_gits(path) and not is_cache(path)]
    records = sum(map(_is_gits, found))
    more = f" … +{len(paths) - _NAMED}" if len(paths) > _NAMED else ""
    named = ", ".join(map(printable, paths[:_NAMED])) + more
    if paths:
        yield line("approval.impact.files_restored", count=len(paths), paths=named)
    if records:
        yield line("approval.impact.git_restored", count=records)
    if after_stop:
        yield line("approval.impact.files_before_stop")
    yield line("approval.impact.undo" if args.redo else "approval.impact.redo")


def _told(report: UndoReport, found: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines for the model."""
    if not report.restored and not report.left:
        yield f"There is nothing to {report.kind}: no changes of yours are left."
        return
    restored = {change.path: change.after is None for change in report.restored if not _is_gits(change.path)}
    names = ", ".join(f"{path} (removed)" if gone else path for path, gone in restored.items())
    how = "Done again" if report.kind == "redo" else "Undone exactly, and the user sees the list"
    yield f"{how}: {names or 'none'}."
    if report.left:
        why = ", ".join(f"{one.path} ({one.reason})" for one in report.left)
        yield f"Left as they are: {why}."
    if report.commands:
        yield f"Other effects of these commands may remain: {'; '.join(report.commands)}"
    if report.after_stop:
        yield (
            "The user had stopped this request in between: what came before the stop is undone, too. "
            f"To undo only what came after it: redo, then last={report.after_stop}."
        )
    elif report.kind == "undo":
        yield "/undo redo brings it back."
    if shown := _shown({path: found[path] for path in found if path in restored}):
        yield head_and_tail(shown, _DIFFERENCE)
