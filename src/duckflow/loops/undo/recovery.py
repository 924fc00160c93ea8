"""Recovery after a crash: compare the records with the files, and report. No action is run again (C5)."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError, UserError
from duckflow.domain.files.changes import FileChange, net_changes
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut, one_line
from duckflow.loops.session import Session
from duckflow.safety.files.access import Access
from duckflow.safety.files.path_states import Finding
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.copy.copies import CopyFolders
from duckflow.safety.sandbox.copy.copy_writer import apply_effects
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.kept_files import KeptFiles

_LABEL = 120
_OUTCOMES: dict[Finding, events.ActionOutcome] = {"done": "ok", "not_done": "failed", "unknown": "unknown"}
_TEXTS: dict[Finding, str] = {
    "done": "The program was stopped right after this; the files show that it was done.",
    "not_done": "The program was stopped before this took effect: nothing was changed or tried again.",
    "unknown": (
        "The program was stopped while this ran, so it may or may not have happened. "
        "Look at the files before you go on."
    ),
}


def give_back_saves(killed: str, workspace: Workspace, kept: KeptFiles) -> None:
    """Give back what someone saved at the moment in which a killed session replaced or removed the file."""
    with suppress(UserError):
        for path in kept.last_changed(killed):
            workspace.sweep(path)


def finish_applying(copies: Path, workspace: Workspace, kept: KeptFiles) -> None:
    """Finish applying the effects of a command after a crash, because half of them would be worse."""
    for copy in CopyFolders(copies).unfinished(str(workspace.root)):
        approved = copy.about.approved
        if approved is None:
            continue
        access = Access(workspace, kept, copy.about.owner)
        with suppress(ToolError, OSError):  # the records show the remaining changes
            apply_effects(copy, approved, access, conflicts=approved.conflicts)
        copy.release()


def recover(
    session: Session, workspace: Workspace, kept: KeptFiles, log: SqliteEventLog
) -> tuple[events.ActionFinished, ...]:
    """Record how the actions ended that a crash interrupted. Call it once, when a session is opened again."""
    state = session.state
    if not _was_interrupted(state):
        return ()
    waiting = state.approval is not None and state.approval.task_id is None
    succeeded = _finished(log.load(state.session_id))
    found: dict[Finding, list[str]] = {"done": succeeded, "not_done": [], "unknown": []}
    ended: list[events.ActionFinished] = []
    for running in (state.running, state.task_running):
        if running is not None:
            finding, changes = _look(running, workspace, kept, state.session_id)
            found[finding].append(_label(running.action))
            ended.append(_end(running, finding, changes, session))
    background = session.state.background_commands
    for one in background:
        label = cut(f"shell.start {' '.join(one.command.split())}", _LABEL)
        found["unknown"].append(label)
        with suppress(ValueError):  # the command started successfully, but how it ended is unknown
            found["done"].remove(label)
    session.record(
        events.Recovered(
            finished=tuple(found["done"]),
            not_done=tuple(found["not_done"]),
            unknown=tuple(found["unknown"]),
            not_run=() if waiting else tuple(map(_label, state.queue)),
        ),
        *(events.CommandEnded(command=one, how="unknown") for one in background),
        *kept.take_notices(),
    )
    return tuple(ended)


def _look(
    running: events.ActionStarted, workspace: Workspace, kept: KeptFiles, session_id: str
) -> tuple[Finding, tuple[FileChange, ...]]:
    if running.effect in ("read", "consent", "fetch"):
        return "not_done", ()  # they have no effect until their result is recorded
    if running.effect == "foreign":
        return "unknown", ()
    for name in ("path", "to"):
        path = running.action.args.get(name)
        if isinstance(path, str):
            workspace.sweep(path)
    try:
        intended = net_changes(kept.changes(session_id, running.action_id))
        if not intended:
            surely = running.effect in ("write", "delete") and not kept.doubtful
            return "not_done" if surely else "unknown", ()
    except UserError:
        return "unknown", ()
    findings: list[Finding] = [workspace.paths.finding(one) for one in intended]
    done = tuple(one for one, finding in zip(intended, findings, strict=True) if finding == "done")
    same = len(set(findings)) == 1
    return findings[0] if same else "unknown", done


def _end(
    running: events.ActionStarted, finding: Finding, changes: tuple[FileChange, ...], session: Session
) -> events.ActionFinished:
    left = session.state.queue if running.task_id is None else ()
    path = running.action.args.get("path")
    ended = events.ActionFinished(
        action_id=running.action_id,
        operation=running.action.operation,
        outcome=_OUTCOMES[finding],
        text=_TEXTS[finding],
        path=path if isinstance(path, str) else None,
        changed=tuple(dict.fromkeys(change.path for change in changes)),
        removed=tuple(change.path for change in changes if change.after is None),
        changes=changes,
        exact=running.effect == "execute" and bool(changes),
        evidence_id=session.next_evidence_id(),
        not_run=tuple(action.operation for action in left),
        task_id=running.task_id,
    )
    session.record(ended)
    return ended


def _was_interrupted(state: AgentState) -> bool:
    """Return whether the program was killed during work. A normal end records the request's outcome."""
    if state.running is not None or state.task_running is not None or state.background_commands:
        return True
    if state.question is not None:
        return False
    working = state.request is not None and state.request.outcome is None
    return working or state.background_runs


def _finished(earlier: Sequence[events.StoredEvent]) -> list[str]:
    started: dict[str, Action] = {}
    done: list[str] = []
    for recorded in earlier:
        match recorded.event:
            case events.UserMessage():
                started, done = {}, []
            case events.ActionStarted() as event:
                started[event.action_id] = event.action
            case events.ActionFinished(outcome="ok") as event if event.action_id in started:
                done.append(_label(started[event.action_id]))
            case _:
                pass
    return done


def _label(action: Action) -> str:
    target = action.args.get("path") or action.args.get("command") or ""
    return one_line(f"{action.operation} {target}", _LABEL)
