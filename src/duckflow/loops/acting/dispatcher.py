"""The dispatcher: the only way to tools. It resolves each action, asks the gate, and runs it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from duckflow.dialects.dialect import DecisionResult
from duckflow.domain import events
from duckflow.domain.decision import Action
from duckflow.domain.errors import Outdated, Refused, SaidNo, ToolError, UsageError
from duckflow.domain.frozen import replace
from duckflow.domain.questions.approval import STOPPED, Approval
from duckflow.domain.reduce.objective import digest_of
from duckflow.domain.state import purpose_of
from duckflow.domain.text import cut
from duckflow.domain.work.plan import Task
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.gate import Gate, ReviewedCall
from duckflow.loops.acting.runner import ActionRunner
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.session import SessionPart
from duckflow.loops.steps import Steps
from duckflow.safety.redaction.redactor import refuse_markers
from duckflow.safety.uncancelled import shielded
from duckflow.tools.catalogue import Catalogue, ResolvedCall
from duckflow.tools.shell import RUN, TAKE_OVER

OUTDATED = "outdated: the user said “{said}” before this began. Decide again with what they said."
SAID_NO_BEFORE = "The user said no to exactly this before. Do not propose it again, do what they want."
SAID_MORE = " If they have asked for exactly this since then, propose it once more."
_SAID = 200


@dataclass(eq=False)
class Dispatcher(SessionPart):
    """Runs the actions of decisions in order, and the actions of background tasks (A3, A4)."""

    _catalogue: Catalogue
    _gate: Gate
    _effects: CommandEffects
    _steps: Steps
    _hooks: Hooks
    _runner: ActionRunner
    _hook_answer: tuple[str, str] | None = None
    """Digest of the last call that hooks judged, and their reason to ask the user."""

    def queue(self, decided: DecisionResult, used: Sequence[events.UsageReported]) -> None:
        """Record a decision, which queues its actions. Changes that it doubts are held back once (A5)."""
        decision, state = decided.decision, self._state
        doubted = self.changing(decision.actions) if decision.objection else ()
        made = events.DecisionMade(
            loop=(state.request.loops if state.request else 0) + 1,
            decision=decision,
            exchange=decided.exchange,
            held=() if state.doubted else doubted,
            closing=decided.closing,
        )
        said = (events.Reply(text=decision.reply),) if decision.reply.strip() else ()
        self._session.record(*used, made, *said)
        if doubted and state.doubted and not state.attended:
            self._session.notify("decision.doubt", doubt=decision.objection)

    async def run_queue(self) -> bool:
        """Run the queued actions. Return False if the next action waits for the user's approval.

        What the user says meanwhile outdates them, except looks, what they approved, and the effects of a
        command that has run (C6).
        """
        await self._catalogue.source.ready()
        await self._effects.discard_unwanted(self._state)
        while self._state.queue:
            said, action = self._session.words, self._state.queue[0]
            outdated = said is not None and self._state.approved is None and action.operation != TAKE_OVER
            if said is not None and outdated and self.changing((action,)):
                self._runner.log.refuse(action, Outdated(OUTDATED.format(said=cut(said.text, _SAID))), None)
            elif not await self._run_next(action):
                return False
        return True

    async def end_background(self, *, cancelled: bool = False) -> bool:
        """End the background commands. Return True if actions that apply their effects were queued (G11)."""
        left = await self._effects.left_over(self._state, background=True, cancelled=cancelled)
        how = "cancelled" if cancelled else "with_request"
        ended = (events.CommandEnded(command=one, how=how) for one in self._state.background_commands)
        self._session.record(*ended, *((events.ActionQueued(actions=left),) if left else ()))
        return bool(left)

    async def settle_background(self, *, cancelled: bool = False) -> None:
        """End background commands unless a task list still runs; apply their effects or ask about them."""
        if not self._state.background_runs:
            await self.end_background(cancelled=cancelled)
        while self._state.queue and self._state.queue[0].operation == TAKE_OVER:
            if not await self._run_next(self._state.queue[0]):
                return

    async def _offer_interrupted(self) -> None:
        """Ask the user about the effects of a cancelled command. They are not discarded unasked (G9)."""
        left = await self._effects.left_over(self._state, background=False, cancelled=True)
        if left:
            self._session.record(events.ActionQueued(actions=left))
            await self._run_next(self._state.queue[0])

    async def look_again(self) -> None:
        """Read the files again that changed since the model saw them."""
        await self.run_now(await asyncio.to_thread(self._runner.log.changed_files))

    async def look_at_mentions(self, text: str) -> None:
        """Give the model the items, other than files, that the user's message mentions with @."""
        await self._catalogue.source.ready()
        await self.run_now(self._catalogue.source.mentioned(text), by_user=True)

    def changing(self, actions: Sequence[Action]) -> tuple[int, ...]:
        """Return the indexes of the actions that may change something."""
        return self._catalogue.changing(actions)

    def refuse_queue(self, reason: str) -> None:
        """Refuse all queued actions, and give the model the reason."""
        if self._state.queue:
            self._runner.log.refuse(self._state.queue[0], Refused(reason, "reason.tried_before"), None)

    async def run_now(self, actions: Sequence[Action], *, by_user: bool = False) -> None:
        """Run actions of the program or the user. Skip reads that the user would have to approve."""
        for action in actions:
            call = ResolvedCall(action, *self._catalogue.validate(action))
            if not await self._gate.asks_to_read(call):
                await self._run(ReviewedCall(call), may_ask=False, by_user=by_user)

    async def run_typed(self, command: str) -> None:
        """Run a command that the user typed after `!`."""
        action = Action(operation=RUN, args={"command": command}, reasoning="the user ran it")
        try:
            await self.run_now([action], by_user=True)
        except ToolError:
            self._session.notify("shell.not_there")

    async def run_task(self, task: Task) -> list[events.ActionFinished]:
        """Run one background task, and return its results. If it needs the user's approval, wait for it."""
        action = Action(operation=task.operation, args=task.args, reasoning=purpose_of(self._state, task))
        await self._catalogue.source.ready()
        waiting, results = [action], list[events.ActionFinished]()
        while waiting:
            try:
                reviewed = await self._permit_task(task, self._resolve(waiting[0]))
            except ToolError as error:
                return [*results, self._runner.log.refuse(waiting[0], error, task.task_id)]
            ended = await self._run(reviewed, task_id=task.task_id)
            if ended.outcome == "refused":
                waiting[0] = reviewed.call.action  # a file changed just before it started, so ask again
                continue
            results.append(ended)
            # For example, the effects of a command are still to be applied.
            waiting = [*ended.then, *waiting[1:]] if ended.outcome == "ok" else []
        return results

    async def _run_next(self, action: Action) -> bool:
        if (notice := await self._gate.notice(self._state)) is not None:
            self._session.notify(notice)
        try:
            reviewed = await self._review(self._resolve(action), self._state.objection)
        except ToolError as error:
            self._runner.log.refuse(action, error, None)
            return True
        approval = reviewed.approval
        if approval is not None and approval.digest != self._state.approved:
            if self._state.approved is not None and approval.because == "mode":
                approval = replace(approval, because="changed")
            if self._state.approval is None:  # otherwise, a background task has already asked
                self._steps.await_approval(approval)
                self._hooks.notify("permission_prompt", approval.action.operation)
            return False
        await self._run(reviewed)
        return True

    def _resolve(self, action: Action) -> ResolvedCall:
        """Return the call with secrets instead of markers. Refuse a call that would destroy a secret."""
        meant = self._session.redactor.restore(action)
        tool, args = self._catalogue.validate(meant)
        if tool.effect not in ("read", "consent"):
            refuse_markers(meant.args)
        return ResolvedCall(meant, tool, args)

    async def proposal(self, approval: Approval) -> str | None:
        """Return the text that the user can edit before approving; None if the action became impossible."""
        try:
            return (await self._gate.proposal(self._resolve(approval.action))).content
        except ToolError:
            return None

    async def edit(self, approval: Approval, text: str) -> events.ApprovalAnswered:
        """Approve the action as the user edited it. If its files have changed, the user is asked again."""
        if not approval.editable:
            raise UsageError("approval.not_editable", operation=approval.action.operation)
        try:
            edited = self._resolve(approval.action).edited(text)
            reviewed = await self._gate.review(self._state, self._resolve(edited), self._state.objection)
        except ToolError as error:
            raise UsageError("approval.edit_refused", reason=str(error)) from error
        asked = reviewed.approval
        same = asked is not None and asked.before == approval.before
        return events.ApprovalAnswered(
            approval_id=approval.approval_id,
            yes=True,
            edited=edited,
            digest=asked.digest if asked and same else "",
        )

    async def refuse(self, answered: events.ApprovalAnswered) -> None:
        """Record a refusal, and discard the effects of a command on its copy."""
        action, *rest = self._state.queue
        path = action.args.get("path")
        refusal = events.ActionFinished(
            action_id="",
            operation=action.operation,
            outcome="refused",
            text=_said_no(action, answered),
            path=path if isinstance(path, str) else None,
            declined="later" if answered.stopped else "now",
            evidence_id=self._session.next_evidence_id(),
            not_run=tuple(left.operation for left in rest),
        )
        self._session.record(answered, refusal)
        await self._effects.discard(action)

    async def _permit_task(self, task: Task, call: ResolvedCall) -> ReviewedCall:
        """Return the call of a task once it may run. Ask the user if needed; raise Refused if they say no."""
        while True:
            answer = self._state.task_answer
            if answer is not None and not answer.yes:
                await self._effects.discard(call.action)
                raise SaidNo(_said_no(call.action, answer))
            if answer is not None and answer.edited is not None:
                call = self._resolve(answer.edited)
            reviewed = await self._review(call, None)
            approval = reviewed.approval
            if approval is None or (answer is not None and answer.digest == approval.digest):
                return reviewed
            await self._session.wait_until(lambda state: state.approval is None)
            asked = replace(approval, approval_id=f"p{self._state.seq + 1}", task_id=task.task_id)
            self._session.record(events.ApprovalRequested(approval=asked))
            self._hooks.notify("permission_prompt", asked.action.operation)
            await self._session.wait_until(lambda state: state.approval is None)

    async def _review(self, call: ResolvedCall, objection: str | None) -> ReviewedCall:
        state, digest = self._state, digest_of((call.action,))
        # The model, which knows what the user said since then, may insist on a refused draft.
        refused = () if state.refused_earlier and state.reminded else state.refused
        no = SaidNo(SAID_NO_BEFORE + (SAID_MORE if state.refused_earlier else ""), before=True)
        if digest in refused:
            raise no
        reviewed = await self._judge(call, objection, digest)
        if reviewed.approval is not None and not set(reviewed.approval.drafts).isdisjoint(refused):
            await self._effects.discard(call.action)
            raise no
        return reviewed

    async def _judge(self, call: ResolvedCall, objection: str | None, digest: str) -> ReviewedCall:
        if call.tool.operation == TAKE_OVER:
            return ReviewedCall(call, await self._effects.question(self._state, call))
        if self._hook_answer is None or self._hook_answer[0] != digest:  # hooks see each call once (L5)
            self._hook_answer = digest, await self._hooks.before(call)
        return await self._gate.review(self._state, call, objection, self._hook_answer[1])

    async def _run(
        self,
        reviewed: ReviewedCall,
        *,
        task_id: str | None = None,
        may_ask: bool = True,
        by_user: bool = False,
    ) -> events.ActionFinished:
        self._hook_answer = None
        try:
            return await self._runner.run(reviewed, task_id=task_id, may_ask=may_ask, by_user=by_user)
        except asyncio.CancelledError:
            await shielded(self._offer_interrupted())
            raise


def _said_no(action: Action, answered: events.ApprovalAnswered) -> str:
    said = f"The user said no: {answered.reason}" if answered.reason else "The user said no."
    if answered.stopped:
        said = f"{STOPPED} If they go on, it may be proposed again."
    return (
        f"What this command changed was not kept; earlier changes stay. {said}"
        if action.operation == TAKE_OVER
        else said
    )
