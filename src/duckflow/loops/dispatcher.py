"""The dispatcher: the only door to tools. Resolve, check arguments, ask the policy, run, write it down."""

import asyncio
from collections.abc import Sequence

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError
from duckflow.domain.events import (
    ActionFinished,
    ActionOutcome,
    ActionStarted,
    ApprovalRequested,
    Event,
    Transition,
)
from duckflow.domain.frozen import Frozen
from duckflow.domain.plan import Task
from duckflow.domain.state import AgentState, Approval
from duckflow.domain.text import head_and_tail
from duckflow.domain.transitions import Step
from duckflow.loops.evidence import already_shown
from duckflow.loops.permission import needed_approval
from duckflow.loops.session import Session
from duckflow.safety.workspace import Workspace
from duckflow.tools.catalogue import Catalogue, Tool, ToolResult

RESULT_LIMIT = 60_000
"""Characters of a result that are kept: its head and its tail."""


class Dispatcher:
    """Runs the actions of decisions in order, and the tasks of the background (SPEC A3, A4)."""

    def __init__(self, session: Session, catalogue: Catalogue, workspace: Workspace) -> None:
        self._session = session
        self._catalogue = catalogue
        self._workspace = workspace

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def run_queue(self) -> bool:
        """Run what is queued; False when the next action waits for the user."""
        while self._state.queue:
            if not await self._run_next(self._state.queue[0]):
                return False
        return True

    async def run_now(self, actions: Sequence[Action]) -> None:
        """Look at what the program itself wants to see; a failure is no reason to stop."""
        for action in actions:
            await self._run(action, *self._catalogue.validate(action), task_id=None)

    async def run_task(self, task: Task) -> ActionFinished:
        """Run one task of the background; where it needs the user, wait for the answer."""
        action = Action(operation=task.operation, args=task.args)
        try:
            tool, args = self._catalogue.validate(action)
            await self._permit_task(task, action, tool, args)
        except ToolError as error:
            return self._fail(action, error, task.task_id)
        return await self._run(action, tool, args, task_id=task.task_id)

    async def _run_next(self, action: Action) -> bool:
        try:
            tool, args = self._catalogue.validate(action)
            approval = await needed_approval(self._state, self._workspace, action, tool, args)
        except ToolError as error:
            self._fail(action, error, None)
            return True
        if approval is not None and approval.digest != self._state.approved:
            self._ask(approval)
            return False
        await self._run(action, tool, args, task_id=None)
        return True

    def _ask(self, approval: Approval) -> None:
        state = self._state
        if state.approval is not None:
            return  # the background asked first; this one is asked when the queue is run again
        reason = "a change needs the user's yes"
        waiting = Transition(start=state.step, end=Step.AWAITING_APPROVAL, by="program", reason=reason)
        self._session.record(ApprovalRequested(approval=approval), waiting)

    async def _permit_task(self, task: Task, action: Action, tool: Tool, args: Frozen) -> None:
        """Come back when the task may run, having asked where needed; Refused when the user said no."""
        while True:
            approval = await needed_approval(self._state, self._workspace, action, tool, args)
            answer = self._state.task_answer
            if approval is None or (answer and answer.yes and answer.digest == approval.digest):
                return
            if answer and answer.digest == approval.digest:
                raise Refused(f"The user said no: {answer.reason}" if answer.reason else "The user said no.")
            await self._session.wait_until(lambda state: state.approval is None)
            asked = approval.model_copy(
                update={"approval_id": f"p{self._state.seq + 1}", "task_id": task.task_id}
            )
            self._session.record(ApprovalRequested(approval=asked))
            await self._session.wait_until(lambda state: state.approval is None)

    async def _run(self, action: Action, tool: Tool, args: Frozen, *, task_id: str | None) -> ActionFinished:
        self._start(action, task_id)
        target = next(iter(tool.targets(args)), None)
        try:
            result = await tool.run(args)
        except ToolError as error:
            return self._record(self._ended(action, "failed", str(error), task_id), path=target)
        except asyncio.CancelledError:
            stopped = "Stopped by the user while it ran."
            self._record(self._ended(action, "unknown", stopped, task_id), path=target)
            raise
        return self._succeed(action, result, task_id)

    def _fail(self, action: Action, error: ToolError, task_id: str | None) -> ActionFinished:
        self._start(action, task_id)
        outcome: ActionOutcome = "refused" if isinstance(error, Refused) else "failed"
        path = action.args.get("path")
        ended = self._ended(action, outcome, str(error), task_id)
        return self._record(ended, path=path if isinstance(path, str) else None)

    def _start(self, action: Action, task_id: str | None) -> None:
        action_id = f"a{self._state.seq + 1}"
        self._session.record(ActionStarted(action_id=action_id, action=action, task_id=task_id))

    def _succeed(self, action: Action, result: ToolResult, task_id: str | None) -> ActionFinished:
        text = already_shown(self._state, action.operation, result) or result.text
        ended = self._ended(action, "ok", text, task_id).model_copy(
            update={"changed": result.changed, "digest": result.digest, "then": result.then}
        )
        return self._record(ended, *result.events, path=result.path)

    def _ended(
        self, action: Action, outcome: ActionOutcome, text: str, task_id: str | None
    ) -> ActionFinished:
        state = self._state
        running = state.running if task_id is None else state.task_running
        left = () if outcome == "ok" or task_id else state.queue
        return ActionFinished(
            action_id=running.action_id if running else "",
            operation=action.operation,
            outcome=outcome,
            text=head_and_tail(text, RESULT_LIMIT),
            evidence_id=self._session.next_evidence_id(),
            not_run=tuple(one.operation for one in left),
            task_id=task_id,
        )

    def _record(self, ended: ActionFinished, *events: Event, path: str | None) -> ActionFinished:
        self._session.record(ended.model_copy(update={"path": path}), *events)
        return ended
