"""The book of actions: how each begins and ends is written down here, the same way for both loops."""

from collections.abc import Sequence

from duckflow.domain.changes import FileChange, ToolEffect
from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import ActionFinished, ActionOutcome, ActionStarted, Event
from duckflow.domain.text import head_and_tail
from duckflow.loops.acting.effects import Watch
from duckflow.loops.acting.evidence import already_shown
from duckflow.loops.session import Session
from duckflow.store.kept_files import Mark
from duckflow.tools.catalogue import ToolResult

RESULT_LIMIT = 60_000
"""Characters of a result that are kept: its head and its tail."""


class ActionLog:
    """Writes down one action after the other."""

    def __init__(self, session: Session, watch: Watch) -> None:
        self._session = session
        self._watch = watch

    def start(self, action: Action, task_id: str | None, effect: ToolEffect = "read") -> Mark:
        """An action is about to take effect."""
        state = self._session.state
        action_id = f"a{state.seq + 1}"
        self._session.record(
            ActionStarted(action_id=action_id, action=action, task_id=task_id, effect=effect)
        )
        return Mark(state.session_id, state.request.request_id if state.request else "", action_id)

    def fail(self, action: Action, error: ToolError, task_id: str | None) -> ActionFinished:
        """It was not even begun: it can't be done, or may not be."""
        self.start(action, task_id)
        outcome: ActionOutcome = "refused" if isinstance(error, Refused) else "failed"
        path = action.args.get("path")
        ended = self.ended(action, outcome, str(error), task_id)
        return self.write(ended, path=path if isinstance(path, str) else None)

    def put_back(self, action: Action, error: ToolError, task_id: str | None) -> ActionFinished:
        """What was approved is not there any more: nothing was done, and the action is asked about anew."""
        ended = self.ended(action, "refused", f"{error} The user is asked again.", task_id)
        return self.write(ended.model_copy(update={"then": (action,), "not_run": ()}), path=None)

    def succeed(
        self, action: Action, result: ToolResult, made: Sequence[FileChange], task_id: str | None
    ) -> ActionFinished:
        """It was done; this came of it."""
        shown = result.model_copy(update={"text": self._session.redactor.clean(result.text)})
        text = already_shown(self._session.state, action.operation, shown) or shown.text
        ended = self.ended(action, "ok", text, task_id).model_copy(
            update={"digest": result.digest, "exit_code": result.exit_code, "then": result.then}
        )
        described = self._watch.describe(ended, made, result.changed)
        return self.write(described, *result.events, path=result.path)

    def ended(self, action: Action, outcome: ActionOutcome, text: str, task_id: str | None) -> ActionFinished:
        """The end of an action, not written down yet."""
        state = self._session.state
        running = state.running if task_id is None else state.task_running
        left = () if outcome == "ok" or task_id else state.queue
        return ActionFinished(
            action_id=running.action_id if running else "",
            operation=action.operation,
            outcome=outcome,
            # Redacted before it is cut: half a secret would not be recognised.
            text=head_and_tail(self._session.redactor.clean(text), RESULT_LIMIT),
            evidence_id=self._session.next_evidence_id(),
            not_run=tuple(one.operation for one in left),
            task_id=task_id,
        )

    def write(self, ended: ActionFinished, *events: Event, path: str | None) -> ActionFinished:
        """Write down the end of an action, and what happened besides."""
        self._session.record(ended.model_copy(update={"path": path}), *events, *self._watch.notices())
        return ended
