"""The dispatcher: the only way to tools. Resolve, check arguments, ask the gate, run, write it down."""

import asyncio
from collections.abc import Sequence
from contextlib import nullcontext

from duckflow.domain.decision import Action
from duckflow.domain.errors import Refused, ToolError, UsageError
from duckflow.domain.events import (
    ActionFinished,
    ActionQueued,
    ApprovalAnswered,
    ApprovalRequested,
    CommandEnded,
)
from duckflow.domain.files.changes import FileChange
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import Approval, asked_by_task
from duckflow.domain.reduce.attempts import digest_of
from duckflow.domain.state import AgentState, purpose_of
from duckflow.domain.work.checks import checks_line
from duckflow.domain.work.plan import Task
from duckflow.evaluation.checks import Checks
from duckflow.loops.acting.action_log import ActionLog
from duckflow.loops.acting.approvals import permit_of
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.evidence import changed_files
from duckflow.loops.acting.gate import Gate
from duckflow.loops.calls import ResolvedCall
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.session import Session
from duckflow.loops.steps import Steps
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.safety.files.access import Access
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.safety.files.ledger import made_of
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.redaction.redactor import refuse_markers
from duckflow.safety.uncancelled import shielded
from duckflow.store.kept_files import KeptFiles
from duckflow.tools.catalogue import Catalogue, ToolResult
from duckflow.tools.shell import TAKE_OVER


class Dispatcher:
    """Runs the actions of decisions in order, and the tasks of the background (A3, A4)."""

    def __init__(
        self,
        session: Session,
        catalogue: Catalogue,
        workspace: Workspace,
        kept: KeptFiles,
        snapshots: Snapshots,
        gate: Gate,
        effects: CommandEffects,
        steps: Steps,
        checks: Checks,
        hooks: Hooks,
    ) -> None:
        self._session = session
        self._catalogue = catalogue
        self._workspace = workspace
        self._kept = kept
        self._snapshots = snapshots
        self._gate = gate
        self._effects = effects
        self._steps = steps
        self._checks = checks
        self._hooks = hooks
        self._hooks_said: tuple[str, str] | None = None
        self._log = ActionLog(session, workspace, kept, catalogue)

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def run_queue(self) -> bool:
        """Run what is queued; False when the next action waits for the user."""
        await self._catalogue.ready()
        await self._effects.discard_unwanted(self._state)
        while self._state.queue:
            if not await self._run_next(self._state.queue[0]):
                return False
        return True

    async def end_background(self, *, cancelled: bool = False) -> bool:
        """End the commands that go on; True if what they did is to be settled next (G11)."""
        left = await self._effects.left_over(self._state, background=True, cancelled=cancelled)
        how = "cancelled" if cancelled else "with_request"
        ended = (CommandEnded(command=one, how=how) for one in self._state.background_commands)
        self._session.record(*ended, *((ActionQueued(actions=left),) if left else ()))
        return bool(left)

    async def settle_background(self, *, cancelled: bool = False) -> None:
        """The work ends here: no command goes on, and what they did is taken over or asked about."""
        if not self._state.background_runs:
            await self.end_background(cancelled=cancelled)
        while self._state.queue and self._state.queue[0].operation == TAKE_OVER:
            if not await self._run_next(self._state.queue[0]):
                return

    async def _offer_interrupted(self) -> None:
        """A command was cancelled: what it did is not thrown away unasked, and not kept either (G9)."""
        left = await self._effects.left_over(self._state, background=False, cancelled=True)
        if left:
            self._session.record(ActionQueued(actions=left))
            await self._run_next(self._state.queue[0])

    async def look_again(self) -> None:
        """Look into the files that were shown to the model and have other content now."""
        await self.run_now(await changed_files(self._state, self._workspace))

    async def look_at_mentions(self, text: str) -> None:
        """Show the model what the user's message mentions, of what is no file."""
        await self._catalogue.ready()
        await self.run_now(self._catalogue.mentioned(text), by_user=True)

    def changing(self, actions: Sequence[Action]) -> tuple[int, ...]:
        """Places of the actions that do more than look."""
        return tuple(place for place, one in enumerate(actions) if not self._catalogue.only_looks(one))

    def refuse_queue(self, reason: str) -> None:
        """Run nothing of what is queued, and tell the model why."""
        if self._state.queue:
            self._log.refuse(self._state.queue[0], Refused(reason), None)

    async def run_now(self, actions: Sequence[Action], *, by_user: bool = False) -> None:
        """Look at what the program itself, or the user, wants to see; a failure is no reason to stop."""
        for action in actions:
            call = ResolvedCall(action, *self._catalogue.validate(action))
            if not await self._gate.asks_to_read(call):
                await self._run(call, None, task_id=None, may_ask=False, by_user=by_user)

    async def run_task(self, task: Task) -> ActionFinished:
        """Run one task of the background; if it needs the user, wait for the answer."""
        action = Action(operation=task.operation, args=task.args, reasoning=purpose_of(self._state, task))
        await self._catalogue.ready()
        waiting = [action]
        while True:
            try:
                call, approval = await self._permit_task(task, self._resolve(waiting[0]))
            except ToolError as error:
                return self._log.refuse(waiting[0], error, task.task_id)
            ended = await self._run(call, approval, task_id=task.task_id)
            if ended.outcome == "ok" and (*ended.then, *waiting[1:]):
                waiting = [*ended.then, *waiting[1:]]  # what a command did has to be taken over, for one
                continue
            if ended.outcome != "refused":
                return ended
            waiting[0] = call.action  # changed by someone at the last moment: asked about again

    async def _run_next(self, action: Action) -> bool:
        if (notice := await self._gate.notice(self._state)) is not None:
            self._session.record(notice)
        try:
            call = self._resolve(action)
            approval = await self._question(call, self._state.objection)
        except ToolError as error:
            self._log.refuse(action, error, None)
            return True
        if approval is not None and approval.digest != self._state.approved:
            if self._state.approved is not None and approval.because == "mode":
                approval = replace(approval, because="changed")
            if self._state.approval is None:  # else the background asked first, and this is asked afterwards
                self._steps.await_approval(approval)
                self._hooks.notify("permission_prompt", approval.action.operation)
            return False
        await self._run(call, approval, task_id=None)
        return True

    def _resolve(self, action: Action) -> ResolvedCall:
        """The action as the model wrote it, its tool and arguments; refused if a secret would be lost."""
        meant = self._session.redactor.restore(action)
        tool, args = self._catalogue.validate(meant)
        if tool.effect not in ("read", "consent"):
            refuse_markers(meant.args)
        return ResolvedCall(meant, tool, args)

    async def proposal(self, approval: Approval) -> str | None:
        """What the open question would write or run, for the user to change; None if that can't be had."""
        try:
            call = self._resolve(approval.action)
            return (await call.tool.propose(call.args, self._workspace)).content
        except ToolError:
            return None  # its file is not what it was: the question itself will say so

    async def edit(self, approval: Approval, text: str) -> ApprovalAnswered:
        """A yes to what the user made of the action; if its files changed meanwhile, it is shown first."""
        if not approval.editable:
            raise UsageError("approval.not_editable", operation=approval.action.operation)
        try:
            edited = self._resolve(approval.action).edited(text)
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

    async def refuse(self, answered: ApprovalAnswered) -> None:
        """Take a no: the action ends here, and what a command did to its copy is thrown away."""
        action, *rest = self._state.queue
        refusal = ActionFinished(
            action_id="",
            operation=action.operation,
            outcome="refused",
            text=_said_no(action, answered.reason),
            evidence_id=self._session.next_evidence_id(),
            not_run=tuple(left.operation for left in rest),
        )
        self._session.record(answered, refusal)
        await self._effects.discard(action)

    async def _permit_task(self, task: Task, call: ResolvedCall) -> tuple[ResolvedCall, Approval | None]:
        """Come back when the task may run, having asked if needed; Refused if the user said no."""
        while True:
            answer = self._state.task_answer
            if answer is not None and not answer.yes:
                await self._effects.discard(call.action)
                raise Refused(_said_no(call.action, answer.reason))
            if answer is not None and answer.edited is not None:
                call = self._resolve(answer.edited)
            approval = await self._question(call, None)
            if approval is None or (answer is not None and answer.digest == approval.digest):
                return call, approval
            await self._session.wait_until(lambda state: state.approval is None)
            asked = asked_by_task(approval, f"p{self._state.seq + 1}", task.task_id)
            self._session.record(ApprovalRequested(approval=asked))
            self._hooks.notify("permission_prompt", asked.action.operation)
            await self._session.wait_until(lambda state: state.approval is None)

    async def _question(self, call: ResolvedCall, objection: str | None) -> Approval | None:
        if call.tool.operation == TAKE_OVER:
            return await self._effects.question(self._state, call)
        return await self._gate.question(self._state, call, objection, await self._ask_hooks(call))

    async def _ask_hooks(self, call: ResolvedCall) -> str:
        """Why a hook wants it asked; each call is put to them once, before the user hears of it (L5)."""
        digest = digest_of((call.action,))
        if self._hooks_said is None or self._hooks_said[0] != digest:
            self._hooks_said = digest, await self._hooks.before(call)
        return self._hooks_said[1]

    async def _run(
        self,
        call: ResolvedCall,
        approval: Approval | None,
        *,
        task_id: str | None,
        may_ask: bool = True,
        by_user: bool = False,
    ) -> ActionFinished:
        action, tool, args = call
        await self._session.pause()
        self._hooks_said = None
        owner = self._log.start(action, task_id, tool.effect)
        access = Access(self._workspace, self._kept, owner, permit_of(approval))
        watches = tool.effect == "execute" and not await self._effects.on_copies()
        watched = self._snapshots.around(access) if watches else nullcontext()
        target = next(iter(tool.targets(args)), None)
        try:
            async with watched:
                result = await tool.run(args, access)
                if tool.effect in ("write", "delete") and not tool.by_program:
                    await self._effects.show(access.changes)
                if tool.effect == "write" and not tool.by_program:
                    result = await self._checked(result, access.changes)
            result = await self._effects.settle(
                self._state, call, result, access, may_ask=may_ask, by_user=by_user
            )
            if may_ask:  # else it is not the model's doing
                result = await self._hooks.after(call, result)
        except ToolError as error:
            meanwhile = approval is not None and isinstance(error, ChangedMeanwhile)
            if meanwhile and not made_of(self._workspace, access.changes):  # what was approved is gone
                again = ToolResult(text=f"{error} The user is asked again.", then=(action,))
                return self._log.end(action, "refused", again, (), task_id)
            failed = ToolResult(text=str(error), path=target)
            return self._log.end(action, "failed", failed, access.changes, task_id)
        except asyncio.CancelledError:
            stopped = ToolResult(text="Stopped by the user while it ran.", path=target)
            self._log.end(action, "unknown", stopped, access.changes, task_id)
            await shielded(self._offer_interrupted())
            raise
        ended = self._log.end(action, "ok", result, access.changes, task_id)
        await self._log.keep_whole(ended, result)
        return ended

    async def _checked(self, result: ToolResult, changes: Sequence[FileChange]) -> ToolResult:
        """The result of an edit, with the quick checks of the files it wrote (J10)."""
        paths = tuple(dict.fromkeys(change.path for change in changes))
        told = checks_line(await self._checks.after_edit(paths) if paths else ())
        return replace(result, text=f"{result.text}\n{told}") if told else result


def _said_no(action: Action, reason: str) -> str:
    said = f"The user said no: {reason}" if reason else "The user said no."
    return f"{said} What the command changed was thrown away." if action.operation == TAKE_OVER else said
