"""Applies events about actions: queued, started, finished, and what their results show."""

import json
from pathlib import PurePosixPath

from duckflow.domain.events import ActionFinished, ActionQueued, ActionStarted
from duckflow.domain.files.caches import is_cache
from duckflow.domain.files.changes import FOLDER
from duckflow.domain.frozen import replace
from duckflow.domain.pacing.limits import digest_of
from duckflow.domain.reduce.approvals import count_unseen
from duckflow.domain.reduce.changes import note_changes
from duckflow.domain.reduce.objective import note_action, note_declined
from duckflow.domain.reduce.plans import set_task
from duckflow.domain.reduce.transcript import outdate, remember, supersede, tell
from duckflow.domain.state import AgentState, Request, TranscriptEntry
from duckflow.domain.text import cut
from duckflow.domain.transitions import Status
from duckflow.domain.work.objective import Support

LEFT_SHOWN, COMMAND_SHOWN = 8, 500
LEFT_BEHIND = (
    "finish did not count yet, because a command left new files behind: {names}. "
    "Remove those that are not wanted, then finish."
)
"""Message for the model if a command of its last decision created files that it did not name."""


def start_action(state: AgentState, event: ActionStarted) -> AgentState:
    """Mark the action as running and remove it from the queue."""
    if event.task_id is not None:
        return set_task(replace(state, task_running=event, task_answer=None), event.task_id, "in_progress")
    place = next((at for at, one in enumerate(state.queue) if one == event.action), 0)
    queue = state.queue[:place] + state.queue[place + 1 :]
    # A change of the model's own replaces the one that was set aside.
    aside = state.set_aside if event.effect in ("read", "fetch") else ()
    return replace(state, running=event, queue=queue, approved=None, set_aside=aside)


def queue_actions(state: AgentState, event: ActionQueued) -> AgentState:
    """Insert actions at the front of the queue, but after an action about which the user is being asked."""
    asked = 1 if state.approval is not None and state.approval.task_id is None else 0
    queued = replace(state, queue=state.queue[:asked] + event.actions + state.queue[asked:])
    again = event.actions == state.set_aside
    return replace(queued, set_aside=(), next_step="continue") if again else queued


def finish_action(state: AgentState, event: ActionFinished) -> AgentState:
    """Record the result of an action as evidence and in the request."""
    running = state.running if event.task_id is None else state.task_running
    command = ""
    if running is not None and event.operation == "shell.run":
        command = str(running.action.args.get("command", ""))
    request = state.request
    if request is not None and event.declined is not None:
        request = note_declined(request, event, event.path or command)
    elif request is not None:
        changed = _changes_work(state, event)
        request = note_action(_progress(request, event), event, command, changed=changed)
    acts = running is not None and running.effect not in (None, "read", "fetch")
    if request is not None and (event.declined is not None or (acts and event.outcome != "ok")):
        request = replace(request, attempted=True)
    count, unseen = state.evidence_count + 1, count_unseen(state, event)
    noted = replace(note_changes(state, event, running), request=request, evidence_count=count, unseen=unseen)
    current, outdated = outdate(_after(noted, event), *event.changed)
    subject = _subject(running, event)
    if not event.same_as:
        current, replaced = supersede(current, subject, event.path, event.digest)
        outdated += replaced
    lines = [f"[{event.evidence_id}] {event.operation}: {event.outcome}"]
    lines += (
        [f"The user ran this command: {cut(command, COMMAND_SHOWN)}"] if event.by_user and command else []
    )
    lines.append(event.text)
    if event.not_run:
        lines.append("Not run: " + ", ".join(event.not_run))
    if outdated:
        lines.append(f"Older now, do not rely on it: {', '.join(outdated)}")
    entry = TranscriptEntry(
        role="user",
        text="\n".join(lines),
        evidence_id=event.evidence_id,
        operation=event.operation,
        path=event.path,
        digest=event.digest,
        subject=subject,
        same_as=event.same_as,
        pictures=event.pictures,
        supports=_support(event, running, command),
        result_of=running.action.call_id if running and event.task_id is None else "",
        failed=event.outcome != "ok",
    )
    left = _left_behind(command, event) if state.closing else ()
    current = remember(current, entry)
    if not left:
        return current
    names = ", ".join(left[:LEFT_SHOWN]) + (", …" if len(left) > LEFT_SHOWN else "")
    return tell(replace(current, next_step="continue"), LEFT_BEHIND.format(names=names))


def _changes_work(state: AgentState, event: ActionFinished) -> bool:
    """Return whether the action changed files, other than caches and files that this request had created."""
    changed = (path for path in event.changed if not is_cache(path))
    return any(path not in event.removed or not _made_by_request(state, path) for path in changed)


def _made_by_request(state: AgentState, path: str) -> bool:
    own = state.request.request_id if state.request else ""
    changes = (one for made in state.change_sets if made.request_id == own for one in made.changes)
    first = next((one for one in changes if one.path == path), None)
    return first is not None and first.before is None


def _left_behind(command: str, event: ActionFinished) -> tuple[str, ...]:
    """Return new files that a command created but did not name, as test runs do. Git's own are no litter."""
    made = (one for one in event.changes if one.before is None and one.after != FOLDER and not one.ignored)
    return tuple(
        one.path
        for one in made
        if command and not _is_expected(one.path) and PurePosixPath(one.path).name not in command
    )


def _is_expected(path: str) -> bool:
    return is_cache(path) or ".git" in path.split("/")


def _subject(running: ActionStarted | None, event: ActionFinished) -> str:
    if running is None or running.effect not in ("read", "fetch", "execute") or event.outcome == "refused":
        return ""
    asked = f"{event.operation} {json.dumps(running.action.args, sort_keys=True)}"
    return digest_of(asked)


def _support(event: ActionFinished, running: ActionStarted | None, command: str) -> Support:
    if event.outcome != "ok" or (command and event.exit_code != 0) or event.tests_failed:
        return "nothing"
    acts = running is not None and running.effect not in (None, "read", "fetch") and not event.unchanged
    return "change" if command or event.changed or acts else "reading"


def _progress(request: Request, event: ActionFinished) -> Request:
    if event.outcome == "refused":
        return request  # a refusal is no failure, and it resolves none
    known = tuple(path for path in request.changed if path not in event.changed)
    target = event.path or event.operation
    failing = tuple(one for one in request.failing if one != target and one not in event.changed)
    if event.outcome != "ok":
        failing = (*failing, target)
    return replace(
        request,
        changed=known + event.changed,
        removed=(*(one for one in request.removed if one not in event.changed), *event.removed),
        failing=failing,
        recoveries=request.recoveries if failing else 0,
    )


def _after(state: AgentState, event: ActionFinished) -> AgentState:
    if event.task_id is not None:
        return replace(state, task_running=None)
    dropped = range(len(state.queue)) if event.not_run_at is None else event.not_run_at
    left = tuple(one for place, one in enumerate(state.queue) if place not in dropped)
    if event.outcome == "ok":
        # The model must see a failed command before the work can count as done.
        well = event.exit_code in (None, 0) and not event.tests_failed
        following = state.next_step if well else "continue"
        queue = event.then + (left if event.not_run else state.queue)
        ended = replace(state, running=None, status=Status.SUCCESS, queue=queue)
        return replace(ended, next_step=following)
    if event.then:
        return replace(state, running=None, queue=event.then + state.queue)
    if event.declined is not None:
        # The user decides what happens instead: that is no error, but nothing else of the list runs.
        asks = state.asks_instead or (event.declined == "before" and state.reminded)
        reminded = state.reminded or event.declined == "before"
        told = replace(state, running=None, queue=(), next_step="continue", closing="")
        return replace(told, status=Status.IN_PROGRESS, reminded=reminded, asks_instead=asks)
    return replace(state, running=None, status=Status.ERROR, queue=left, next_step="continue")
