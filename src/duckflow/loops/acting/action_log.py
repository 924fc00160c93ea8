"""The log of actions: how each begins and ends is written down here, the same way for both loops."""

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import ActionFinished, ActionOutcome, ActionStarted
from duckflow.domain.files.changes import FileChange, ToolEffect
from duckflow.domain.text import head_and_tail
from duckflow.loops.acting.evidence import already_shown
from duckflow.loops.session import Session
from duckflow.safety.files.ledger import made_of
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.tools.catalogue import ToolResult

RESULT_LIMIT = 60_000
"""Characters of a result that are kept: its head and its tail."""


class ActionLog:
    """Writes down one action after the other."""

    def __init__(self, session: Session, workspace: Workspace, kept: KeptFiles) -> None:
        self._session = session
        self._workspace = workspace
        self._kept = kept

    def start(self, action: Action, task_id: str | None, effect: ToolEffect = "read") -> ChangeOwner:
        """An action is about to take effect."""
        state = self._session.state
        action_id = f"a{state.seq + 1}"
        self._session.record(
            ActionStarted(action_id=action_id, action=action, task_id=task_id, effect=effect)
        )
        return ChangeOwner(state.session_id, state.request.request_id if state.request else "", action_id)

    def refuse(self, action: Action, error: ToolError, task_id: str | None) -> ActionFinished:
        """It was not even begun: it can't be done, or may not be."""
        self.start(action, task_id)
        path = action.args.get("path")
        outcome: ActionOutcome = "refused" if isinstance(error, Refused) else "failed"
        about = ToolResult(text=str(error), path=path if isinstance(path, str) else None)
        return self.end(action, outcome, about, (), task_id)

    def end(
        self,
        action: Action,
        outcome: ActionOutcome,
        result: ToolResult,
        changes: tuple[FileChange, ...],
        task_id: str | None,
    ) -> ActionFinished:
        """It ended like this, and this happened to files; what did not end well is compared with the disk."""
        state = self._session.state
        running = state.running if task_id is None else state.task_running
        made = changes if outcome == "ok" else made_of(self._workspace, changes)
        seen = () if result.exact else (change.path for change in made if not change.ignored)
        changed = tuple(dict.fromkeys((*result.changed, *seen)))
        goes_on = outcome == "ok" or task_id or result.then
        # Redacted before it is cut: half a secret would not be recognised.
        text = self._session.redactor.clean(result.text)
        ended = ActionFinished(
            action_id=running.action_id if running else "",
            operation=action.operation,
            outcome=outcome,
            text=head_and_tail(already_shown(state, action.operation, result, text) or text, RESULT_LIMIT),
            path=result.path,
            changed=changed,
            removed=tuple(path for path in changed if not self._there(path)),
            changes=made,
            exact=result.exact,
            evidence_id=self._session.next_evidence_id(),
            digest=result.digest,
            exit_code=result.exit_code,
            not_run=() if goes_on else tuple(one.operation for one in state.queue),
            then=result.then,
            task_id=task_id,
        )
        self._session.record(ended, *result.events, *self._kept.take_notices())
        return ended

    def _there(self, path: str) -> bool:
        try:
            return self._workspace.status(path) is not None
        except ToolError:
            return True
