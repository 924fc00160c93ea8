"""Applies events of undo and recovery: recorded changes, undone changes, and what a crash left."""

from duckflow.domain.events import ActionFinished, ActionStarted, CommandEnded, Recovered, Undone
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import MOST_CHANGE_SETS, ChangeSet
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.plans import set_task
from duckflow.domain.reduce.transcript import outdate, tell
from duckflow.domain.state import AgentState, Request
from duckflow.domain.text import cut
from duckflow.domain.transitions import Status

_COMMAND = 500
_ENDS = {
    "with_request": "Stopped, for background commands end with the request",
    "cancelled": "Stopped by the user",
    "unknown": "The program was stopped while this ran in the background; how it ended is unknown, and it "
    "was not started again",
}


def note_changes(state: AgentState, event: ActionFinished, running: ActionStarted | None) -> AgentState:
    """Record the file changes of a finished action. `running` is the event with which it started."""
    command = _command(running)
    if not event.changes and (event.exact or not command):
        return state
    made = ChangeSet(
        action_id=event.action_id,
        request_id=_request_id(state),
        operation=event.operation,
        changes=event.changes,
        command=command,
        exact=event.exact,
        task_id=event.task_id,
        stops=state.request.stops if state.request else 0,
    )
    return replace(state, change_sets=(*state.change_sets, made)[-MOST_CHANGE_SETS:])


def take_back(state: AgentState, event: Undone) -> AgentState:
    """Record an undo, open the tasks whose changes are gone, and tell the model which files were restored."""
    earlier = _marked(state.change_sets, event)
    made = ChangeSet(
        action_id=event.undo_id,
        request_id=_request_id(state),
        operation="redo" if event.redo else "undo",
        changes=event.changes,
        takes_back=event.takes_back,
        undone=event.redo,
    )
    paths = tuple(dict.fromkeys(change.path for change in event.changes))
    request = _without(state.request, event, _own_paths(state, event, paths))
    marked = replace(state, change_sets=(*earlier, made)[-MOST_CHANGE_SETS:], request=request)
    for before, after in zip(state.change_sets, earlier, strict=True):
        if after.task_id is not None and before.undone != after.undone:
            marked = set_task(marked, after.task_id, "pending" if after.undone else "completed")
    current, outdated = outdate(marked, *paths)
    # The result of the model's own action has told it.
    return current if event.action_id else tell(current, _told(event, paths, outdated))


def note_recovery(state: AgentState, event: Recovered) -> AgentState:
    """Record what was found after a crash. The queued actions of the chat do not continue automatically."""
    lines = ["The program was stopped in the middle of the work and has been started again."]
    parts = (
        ("Done before that", event.finished),
        ("Not done", (*event.not_done, *event.not_run)),
        ("Unknown, so look before you go on", event.unknown),
    )
    lines += [f"{title}: {', '.join(named)}." for title, named in parts if named]
    asked = state.approval is not None and state.approval.task_id is None
    outcome = "awaiting_approval" if asked else "consultation" if state.consultation else "interrupted"
    request = replace(state.request, outcome=outcome) if state.request else None
    stopped = replace(state, status=Status.REQUIRES_USER_INPUT, request=request)
    if not asked:
        stopped = replace(stopped, queue=(), next_step="continue", approved=None)
    return tell(stopped, "\n".join(lines))


def end_command(state: AgentState, event: CommandEnded) -> AgentState:
    """Remove a background command. Tell the model, unless it stopped the command or it ended normally."""
    left = tuple(one for one in state.background_commands if one.id != event.command.id)
    ended = replace(state, background_commands=left)
    words = _ENDS.get(event.how)
    command = f"{event.command.id} ({cut(event.command.command, 200)})"
    return tell(ended, f"{words}: {command}.") if words else ended


def _marked(sets: tuple[ChangeSet, ...], event: Undone) -> tuple[ChangeSet, ...]:
    """Mark undone actions. A redo marks the undo as undone, so that its actions count again."""
    gone = set(event.takes_back)
    back = {one for undo in sets if event.redo and undo.action_id in gone for one in undo.takes_back}
    marks = {**dict.fromkeys(gone, True), **dict.fromkeys(back, False)}
    return tuple(replace(one, undone=marks[one.action_id]) if one.action_id in marks else one for one in sets)


def _own_paths(state: AgentState, event: Undone, paths: tuple[str, ...]) -> tuple[str, ...]:
    """Return the files that are as they were before this request; for a command of the user, all of them.

    What the model took back of an earlier request is work of this one.
    """
    if not event.action_id:
        return paths
    own = (
        one
        for one in state.change_sets
        if one.request_id == _request_id(state) and one.action_id in event.takes_back
    )
    return tuple(dict.fromkeys(change.path for one in own for change in one.changes if change.path in paths))


def _without(request: Request | None, event: Undone, paths: tuple[str, ...]) -> Request | None:
    if request is None:
        return None
    kept = tuple(path for path in request.changed if path not in paths)
    removed = tuple(path for path in request.removed if path not in paths)
    gone = tuple(change.path for change in event.changes if change.after is None) if event.redo else ()
    return replace(request, changed=kept + (paths if event.redo else ()), removed=removed + gone)


def _told(event: Undone, paths: tuple[str, ...], outdated: tuple[str, ...]) -> str:
    what = "again as they were before the user's undo" if event.redo else "back to what they were before"
    named = [path for path in paths if not is_cache(path) and ".git" not in path.split("/")]
    named += ["records of git"] if any(".git" in path.split("/") for path in paths) else []
    lines = [f"The user took changes back: these files are {what}: {', '.join(named) or 'none'}."]
    lines += [] if event.redo else ["They can bring them again by /undo redo."]
    if event.left:
        lines.append(f"Left as they are: {', '.join(left.path for left in event.left)}.")
    if outdated:
        lines.append(f"Older now, do not rely on it: {', '.join(outdated)}")
    return "\n".join(lines)


def _command(running: ActionStarted | None) -> str:
    if running is None or running.effect != "execute":
        return ""
    return cut(str(running.action.args.get("command") or running.action.operation), _COMMAND)


def _request_id(state: AgentState) -> str:
    return state.request.request_id if state.request else ""
