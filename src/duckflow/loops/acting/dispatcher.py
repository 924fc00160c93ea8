"""The dispatcher: the only door to tools. Resolve, check arguments, ask the policy, run, write it down."""

import asyncio
from collections.abc import Sequence

from duckflow.domain.changes import FileChange
from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError, UsageError
from duckflow.domain.events import ActionFinished, ApprovalAnswered, ApprovalRequested, Transition
from duckflow.domain.plan import Task
from duckflow.domain.state import AgentState, Approval
from duckflow.domain.transitions import Step
from duckflow.loops.acting.action_log import ActionLog
from duckflow.loops.acting.calls import ResolvedCall, editable, edited_action, proposal
from duckflow.loops.acting.effects import Watch
from duckflow.loops.acting.evidence import changed_files
from duckflow.loops.acting.gate import Gate, permit_of
from duckflow.loops.session import Session
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.safety.files.permit import holding
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.redaction.redactor import refuse_markers
from duckflow.tools.catalogue import Catalogue


class Dispatcher:
    """Runs the actions of decisions in order, and the tasks of the background (SPEC A3, A4)."""

    def __init__(
        self, session: Session, catalogue: Catalogue, workspace: Workspace, watch: Watch, gate: Gate
    ) -> None:
        self._session = session
        self._catalogue = catalogue
        self._workspace = workspace
        self._watch = watch
        self._gate = gate
        self._book = ActionLog(session, watch)

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def run_queue(self) -> bool:
        """Run what is queued; False when the next action waits for the user."""
        while self._state.queue:
            if not await self._run_next(self._state.queue[0]):
                return False
        return True

    async def look_again(self) -> None:
        """Look into the files that were shown to the model and have other content now."""
        await self.run_now(await changed_files(self._state, self._workspace))

    def refuse_queue(self, reason: str) -> None:
        """Run nothing of what is queued, and tell the model why."""
        if self._state.queue:
            self._book.fail(self._state.queue[0], Refused(reason), None)

    async def run_now(self, actions: Sequence[Action]) -> None:
        """Look at what the program itself wants to see; a failure is no reason to stop."""
        for action in actions:
            call = ResolvedCall(action, *self._catalogue.validate(action))
            if not await self._gate.asks_to_read(call):
                await self._run(call, None, task_id=None)

    async def run_task(self, task: Task) -> ActionFinished:
        """Run one task of the background; where it needs the user, wait for the answer."""
        action = Action(operation=task.operation, args=task.args)
        while True:
            try:
                call, approval = await self._permit_task(task, self._resolve(action))
            except ToolError as error:
                return self._book.fail(action, error, task.task_id)
            ended = await self._run(call, approval, task_id=task.task_id)
            if ended.outcome != "refused":
                return ended
            action = call.action  # changed by someone at the last moment: asked about anew

    async def _run_next(self, action: Action) -> bool:
        if (notice := await self._gate.notice(self._state)) is not None:
            self._session.record(notice)
        try:
            call = self._resolve(action)
            approval = await self._gate.question(self._state, call, self._state.objection)
        except ToolError as error:
            self._book.fail(action, error, None)
            return True
        if approval is not None and approval.digest != self._state.approved:
            self._ask(approval)
            return False
        await self._run(call, approval, task_id=None)
        return True

    def _resolve(self, action: Action) -> ResolvedCall:
        """The action as the model wrote it, its tool and arguments; refused where a secret would be lost."""
        meant = self._session.redactor.restore(action)
        tool, args = self._catalogue.validate(meant)
        if tool.effect not in ("read", "consent"):
            refuse_markers(meant.args)
        return ResolvedCall(meant, tool, args)

    async def proposal(self, approval: Approval) -> str:
        """What the open question would write or run, for the user to change."""
        return await proposal(self._resolve(approval.action))

    async def edit(self, approval: Approval, text: str) -> ApprovalAnswered:
        """A yes to what the user made of the action; if its files changed meanwhile, it is shown first."""
        try:
            call = self._resolve(approval.action)
            if not editable(call):
                raise UsageError("approval.not_editable", operation=approval.action.operation)
            edited = edited_action(call, text)
            asked = await self._gate.question(self._state, self._resolve(edited), self._state.objection)
        except ToolError as error:
            raise UsageError("approval.edit_refused", reason=str(error)) from error
        same = asked is not None and asked.before == approval.before
        return ApprovalAnswered(
            approval_id=approval.approval_id,
            yes=True,
            edited=edited,
            digest=asked.digest if asked and same else "",
        )

    def _ask(self, approval: Approval) -> None:
        state = self._state
        if state.approval is not None:
            return  # the background asked first; this one is asked when the queue is run again
        reason = "a change needs the user's yes"
        waiting = Transition(start=state.step, end=Step.AWAITING_APPROVAL, by="program", reason=reason)
        self._session.record(ApprovalRequested(approval=approval), waiting)

    async def _permit_task(self, task: Task, call: ResolvedCall) -> tuple[ResolvedCall, Approval | None]:
        """Come back when the task may run, having asked where needed; Refused when the user said no."""
        while True:
            answer = self._state.task_answer
            if answer is not None and not answer.yes:
                raise Refused(f"The user said no: {answer.reason}" if answer.reason else "The user said no.")
            if answer is not None and answer.edited is not None:
                call = self._resolve(answer.edited)
            approval = await self._gate.question(self._state, call, None)
            if approval is None or (answer is not None and answer.digest == approval.digest):
                return call, approval
            await self._session.wait_until(lambda state: state.approval is None)
            asked = approval.model_copy(
                update={"approval_id": f"p{self._state.seq + 1}", "task_id": task.task_id}
            )
            self._session.record(ApprovalRequested(approval=asked))
            await self._session.wait_until(lambda state: state.approval is None)

    async def _run(
        self, call: ResolvedCall, approval: Approval | None, *, task_id: str | None
    ) -> ActionFinished:
        action, tool, args = call
        book = self._book
        mark = book.start(action, task_id, tool.effect)
        target = next(iter(tool.targets(args)), None)
        made: list[FileChange] = []
        try:
            with holding(permit_of(approval)):
                async with self._watch.over(mark, tool.effect) as made:
                    result = await tool.run(args)
        except ToolError as error:
            failed = self._watch.describe(book.ended(action, "failed", str(error), task_id), made)
            if approval is not None and isinstance(error, ChangedMeanwhile) and not failed.changes:
                return book.put_back(action, error, task_id)
            return book.write(failed, path=target)
        except asyncio.CancelledError:
            stopped = book.ended(action, "unknown", "Stopped by the user while it ran.", task_id)
            book.write(self._watch.describe(stopped, made), path=target)
            raise
        return book.succeed(action, result, made, task_id)
