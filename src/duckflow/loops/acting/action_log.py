"""Log of actions: records the start and end of each action, in the same way for chat and background tasks."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from duckflow.domain.decision import Action
from duckflow.domain.errors import Outdated, Refused, SaidNo, ToolError, UserError
from duckflow.domain.events import ActionFinished, ActionOutcome, ActionStarted, Declined
from duckflow.domain.files.changes import FileChange, ToolEffect
from duckflow.domain.lines import line
from duckflow.domain.state import AgentState
from duckflow.domain.text import head_and_tail, in_pieces
from duckflow.evaluation.known_tests import is_test_command
from duckflow.loops.session import SessionPart
from duckflow.safety.files.access import Access, Permit, PlannedWrite
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.policy.command_risk import only_reads, similar_commands
from duckflow.store.kept_files import ChangeOwner, KeptFiles
from duckflow.tools.catalogue import Catalogue, ToolResult
from duckflow.tools.shell import RUN

RECENT = 12
"""Number of newest transcript entries whose results the model still sees."""

_WATCHED, _FAR = 8, 200
"""Largest number of files to compare before a decision, and number of newest entries to take them from."""


def already_shown(state: AgentState, operation: str, result: ToolResult, text: str) -> str:
    """Return the id of a recent result with the same redacted text, or an empty string."""
    if result.digest is None:
        return ""
    for entry in reversed(state.transcript[-RECENT:]):
        same = entry.path == result.path and entry.operation == operation and not entry.stale
        if same and entry.evidence_id and entry.text.endswith(f"\n{text}"):
            return entry.evidence_id
    return ""


def failure_of(error: ToolError, path: str | None) -> ToolResult:
    """Return an error as a result: its message for the model, and its reason for the user."""
    return ToolResult(
        text=str(error), path=path, reason=line(error.key, **error.values) if error.key else None
    )


def _command(action: Action) -> str:
    return str(action.args.get("command", "")) if action.operation == RUN else ""


def _only_checks(command: str) -> bool:
    """Return whether a command only looks at files, or only runs more tests."""
    return only_reads(command) or (is_test_command(command) and similar_commands(command) is not None)


RESULT_LIMIT = 60_000
"""Largest number of characters of a result to keep. A longer one keeps its beginning and its end."""

_PIECE = 200_000
"""Number of characters to search for secrets at once."""


@dataclass(eq=False)
class ActionLog(SessionPart):
    """Records actions, one at a time."""

    _workspace: Workspace
    _kept: KeptFiles
    _catalogue: Catalogue

    def start(
        self,
        action: Action,
        task_id: str | None,
        effect: ToolEffect = "read",
        permit: Permit | None = None,
        planned: PlannedWrite | None = None,
    ) -> Access:
        """Record that an action starts. Return its access to files."""
        state = self._state
        action_id = f"a{state.seq + 1}"
        self._session.record(
            ActionStarted(action_id=action_id, action=action, task_id=task_id, effect=effect)
        )
        request_id = state.request.request_id if state.request else ""
        owner = ChangeOwner(state.session_id, request_id, action_id)
        return Access(self._workspace, self._kept, owner, permit, planned)

    def refuse(self, action: Action, error: ToolError, task_id: str | None) -> ActionFinished:
        """Record an action that did not begin, because it is impossible or not permitted."""
        self.start(action, task_id)
        path = action.args.get("path")
        outcome: ActionOutcome = "refused" if isinstance(error, Refused) else "failed"
        about = failure_of(error, path if isinstance(path, str) else None)
        declined: Declined | None = None
        if isinstance(error, SaidNo):
            declined = "before" if error.before else "outdated" if isinstance(error, Outdated) else "now"
        return self.end(action, outcome, about, (), task_id, declined)

    def end(
        self,
        action: Action,
        outcome: ActionOutcome,
        result: ToolResult,
        changes: tuple[FileChange, ...],
        task_id: str | None,
        declined: Declined | None = None,
        *,
        by_user: bool = False,
    ) -> ActionFinished:
        """Record the end of an action. If it failed, only the changes found in the files count as made."""
        state = self._state
        running = state.running if task_id is None else state.task_running
        done = changes if outcome == "ok" else self._workspace.paths.made_of(changes)
        seen = () if result.exact else (change.path for change in done if not change.ignored)
        changed = tuple(dict.fromkeys((*result.changed, *seen)))
        dropped = () if task_id else self._dropped(action, outcome, result)
        if declined and not task_id:
            dropped = tuple(range(len(state.queue)))
        # Redact before cutting, because half a secret would not be recognized.
        text = self._session.redactor.clean(result.text)
        same_as = already_shown(state, action.operation, result, text)
        shown = f"{result.path} is unchanged: see [{same_as}]." if same_as else text
        evidence_id = self._session.next_evidence_id()
        before, after = result.frame
        if self._kept.keeps_outputs and (result.whole or len(shown) > RESULT_LIMIT):
            first, _, rest = shown.partition("\n")
            whole = result.whole or shown
            lines = whole.count("\n") + (not whole.endswith("\n"))
            before += 1
            shown = (
                f"{first}\n(only the beginning and the end of {len(whole):,} characters in {lines:,} lines "
                f'are shown; shell.read(id="{evidence_id}", start, end) shows others)\n{rest}'
            )
        ended = ActionFinished(
            action_id=running.action_id if running else "",
            operation=action.operation,
            outcome=outcome,
            text=head_and_tail(shown, RESULT_LIMIT),
            path=result.path,
            changed=changed,
            removed=tuple(path for path in changed if not self._exists(path)),
            changes=done,
            exact=result.exact,
            evidence_id=evidence_id,
            digest=result.digest,
            same_as=same_as,
            exit_code=result.exit_code,
            tests_failed=self._session.redactor.clean(result.tests_failed),
            frame=(before, after),
            reason=result.reason,
            told=result.told,
            pictures=result.pictures,
            by_user=by_user,
            not_run=tuple(state.queue[place].operation for place in dropped),
            not_run_at=dropped,
            then=result.then,
            declined=declined,
            task_id=task_id,
        )
        self._session.record(ended, *result.events, *self._kept.take_notices())
        return ended

    def changed_files(self) -> tuple[Action, ...]:
        """Return actions that read again the files that changed since the model saw them. Blocking."""
        seen: dict[str, str] = {}
        for entry in reversed(self._state.transcript[-_FAR:]):
            if entry.path and entry.digest and not entry.stale:
                seen.setdefault(entry.path, entry.digest)
        reason = "it has changed since it was read"
        return tuple(
            Action(operation="file_ops.read_file", args={"path": path}, reasoning=reason)
            for path, digest in islice(seen.items(), _WATCHED)
            if self._digest(path) not in (digest, None)
        )

    def _digest(self, path: str) -> str | None:
        try:
            return self._workspace.digest(path)
        except ToolError:
            return None

    def _dropped(self, ended: Action, outcome: ActionOutcome, result: ToolResult) -> tuple[int, ...]:
        """Return queue indexes of the changes that do not run after a failed change or failed tests (A4)."""
        queue = self._state.queue
        if outcome != "ok":
            looks = bool(result.then) or self._catalogue.only_looks(ended)
            return () if looks else self._catalogue.changing(queue)
        if not result.exit_code or not is_test_command(_command(ended)):
            return ()
        changing = self._catalogue.changing(queue)
        return tuple(place for place in changing if not _only_checks(_command(queue[place])))

    async def keep_whole(self, ended: ActionFinished, result: ToolResult) -> None:
        """Keep the full text of a result that the model sees in part, without secrets, by its evidence id."""
        whole = result.whole or (result.text if len(result.text) > RESULT_LIMIT else "")
        if not whole or not self._kept.keeps_outputs:
            return
        clean: list[str] = []
        for piece in in_pieces(whole, _PIECE):
            clean.append(self._session.redactor.clean(piece))
            await asyncio.sleep(0)  # so that the prompt stays responsive while the user types
        text = "".join(clean)
        with suppress(UserError):  # the work continues even if the result can't be read again
            await asyncio.to_thread(self._kept.keep_output, self._state.session_id, ended.evidence_id, text)

    def _exists(self, path: str) -> bool:
        try:
            return self._workspace.status(path) is not None
        except ToolError:
            return True
