"""The dispatcher: the only door to tools. Resolve, check arguments, ask the policy, run, write it down."""

import asyncio
import hashlib
import json
from collections.abc import Sequence

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import (
    ActionFinished,
    ActionOutcome,
    ActionStarted,
    ApprovalRequested,
    Transition,
)
from duckflow.domain.frozen import Frozen
from duckflow.domain.state import Approval
from duckflow.domain.text import head_and_tail
from duckflow.domain.transitions import Step
from duckflow.loops.session import Session
from duckflow.safety.policy import decide
from duckflow.safety.protected import Protection, strongest
from duckflow.safety.workspace import Workspace
from duckflow.tools.catalogue import Catalogue, Tool, ToolResult

RESULT_LIMIT = 60_000
"""Characters of a result that are kept: its head and its tail."""


class Dispatcher:
    """Runs the queued actions of a decision in order (SPEC A3, A4)."""

    def __init__(self, session: Session, catalogue: Catalogue, workspace: Workspace) -> None:
        self._session = session
        self._catalogue = catalogue
        self._workspace = workspace

    async def run_queue(self) -> bool:
        """Run what is queued; False when the next action waits for the user."""
        while self._session.state.queue:
            if not await self._run_next(self._session.state.queue[0]):
                return False
        return True

    async def run_now(self, actions: Sequence[Action]) -> None:
        """Run what the program itself wants to look at; a failure is no reason to stop."""
        for action in actions:
            await self._run(action, *self._catalogue.validate(action))

    async def _run_next(self, action: Action) -> bool:
        try:
            tool, args = self._catalogue.validate(action)
            approval = await self._approval(action, tool, args)
        except ToolError as error:
            self._start(action)
            self._finish(action, "refused" if isinstance(error, Refused) else "failed", str(error))
            return True
        if approval is not None:
            self._ask(approval)
            return False
        await self._run(action, tool, args)
        return True

    async def _approval(self, action: Action, tool: Tool, args: Frozen) -> Approval | None:
        """The question this action needs answered first, if any; Refused where it may not run at all."""
        state = self._session.state
        protections: list[Protection] = [self._workspace.protection(path) for path in tool.targets(args)]
        protection: Protection = strongest(*protections) if protections else "none"
        ruling = decide(state.mode, tool.effect, protection)
        if ruling.verdict == "deny":
            raise Refused(f"not permitted: {ruling.reason}")
        objects = state.objection if tool.effect != "read" else None
        if ruling.verdict == "allow" and not objects:
            return None
        difference = await tool.preview(args)
        digest = _digest(action, difference, str(self._workspace.root))
        if state.approved == digest or not difference:
            return None
        return Approval(
            approval_id=f"p{state.seq + 1}",
            action=action,
            intent=action.reasoning or "",
            rationale=objects or ruling.reason,
            difference=difference,
            digest=digest,
        )

    def _ask(self, approval: Approval) -> None:
        state = self._session.state
        waiting = Transition(
            start=state.step, end=Step.AWAITING_APPROVAL, by="program", reason="a change needs the user's yes"
        )
        self._session.record(ApprovalRequested(approval=approval), waiting)

    async def _run(self, action: Action, tool: Tool, args: Frozen) -> None:
        self._start(action)
        try:
            result = await tool.run(args)
        except ToolError as error:
            self._finish(action, "failed", str(error))
        except asyncio.CancelledError:
            self._finish(action, "unknown", "Interrupted by the user while it ran.")
            raise
        else:
            self._finish(action, "ok", result.text, result)

    def _start(self, action: Action) -> None:
        self._session.record(ActionStarted(action_id=f"a{self._session.state.seq + 1}", action=action))

    def _finish(
        self, action: Action, outcome: ActionOutcome, text: str, result: ToolResult | None = None
    ) -> None:
        state = self._session.state
        running = state.running
        self._session.record(
            ActionFinished(
                action_id=running.action_id if running else "",
                operation=action.operation,
                outcome=outcome,
                text=head_and_tail(text, RESULT_LIMIT),
                path=result.path if result else None,
                changed=result.changed if result else (),
                evidence_id=self._session.next_evidence_id(),
                not_run=() if outcome == "ok" else tuple(left.operation for left in state.queue),
            )
        )


def _digest(action: Action, difference: str, root: str) -> str:
    """Binds an approval to exactly what was shown, where."""
    call = json.dumps([action.operation, action.args, difference, root], sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(call.encode("utf-8", "surrogatepass")).hexdigest()
