"""The log of actions: how each begins and ends is written down here, the same way for both loops."""

import asyncio
from contextlib import suppress

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError, UserError
from duckflow.domain.events import ActionFinished, ActionOutcome, ActionStarted
from duckflow.domain.files.changes import FileChange, ToolEffect
from duckflow.domain.text import head_and_tail, in_pieces
from duckflow.loops.acting.evidence import already_shown
from duckflow.loops.session import Session
from duckflow.safety.files.ledger import made_of
from duckflow.safety.files.workspace import Workspace
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.tools.catalogue import Catalogue, ToolResult

RESULT_LIMIT = 60_000
"""Characters of a result that are kept: its head and its tail."""


_PIECE = 200_000
"""Characters that are looked through for secrets at once."""


def _where_to_read(evidence_id: str, whole: str) -> str:
    lines = whole.count("\n") + (not whole.endswith("\n"))
    return (
        f"(only the beginning and the end of {len(whole):,} characters in {lines:,} lines are shown; "
        f'shell.read(id="{evidence_id}", start, end) shows others)'
    )


class ActionLog:
    """Writes down one action after the other."""

    def __init__(self, session: Session, workspace: Workspace, kept: KeptFiles, catalogue: Catalogue) -> None:
        self._session = session
        self._catalogue = catalogue
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
        dropped = () if goes_on else self._dropped(action)
        # Redacted before it is cut: half a secret would not be recognised.
        text = self._session.redactor.clean(result.text)
        same_as = already_shown(state, action.operation, result, text)
        shown = f"{result.path} is unchanged: see [{same_as}]." if same_as else text
        evidence_id = self._session.next_evidence_id()
        if self._kept.keeps_outputs and (result.whole or len(shown) > RESULT_LIMIT):
            first, _, rest = shown.partition("\n")
            shown = f"{first}\n{_where_to_read(evidence_id, result.whole or shown)}\n{rest}"
        ended = ActionFinished(
            action_id=running.action_id if running else "",
            operation=action.operation,
            outcome=outcome,
            text=head_and_tail(shown, RESULT_LIMIT),
            path=result.path,
            changed=changed,
            removed=tuple(path for path in changed if not self._there(path)),
            changes=made,
            exact=result.exact,
            evidence_id=evidence_id,
            digest=result.digest,
            same_as=same_as,
            exit_code=result.exit_code,
            not_run=tuple(state.queue[place].operation for place in dropped),
            not_run_at=dropped,
            then=result.then,
            task_id=task_id,
        )
        self._session.record(ended, *result.events, *self._kept.take_notices())
        return ended

    def _dropped(self, failed: Action) -> tuple[int, ...]:
        """Places in the queue of what does not run after a failure: a failed look stops nothing, and after a
        failed change whatever only looks still runs (A4)."""
        if self._catalogue.only_looks(failed):
            return ()
        queue = enumerate(self._session.state.queue)
        return tuple(place for place, one in queue if not self._catalogue.only_looks(one))

    async def keep_whole(self, ended: ActionFinished, result: ToolResult) -> None:
        """Keep all of a result that is shown in part, without secrets, to be read by its evidence id."""
        whole = result.whole or (result.text if len(result.text) > RESULT_LIMIT else "")
        if not whole or not self._kept.keeps_outputs:
            return
        clean: list[str] = []
        for piece in in_pieces(whole, _PIECE):
            clean.append(self._session.redactor.clean(piece))
            await asyncio.sleep(0)  # each takes a moment, and the user is typing
        text = "".join(clean)
        with suppress(UserError):  # a result that can't be read again is no reason to stop
            await asyncio.to_thread(
                self._kept.keep_output, self._session.state.session_id, ended.evidence_id, text
            )

    def _there(self, path: str) -> bool:
        try:
            return self._workspace.status(path) is not None
        except ToolError:
            return True
