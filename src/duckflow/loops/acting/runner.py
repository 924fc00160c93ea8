"""Run one permitted call: its tool, the checks and hooks after it, and the record of its outcome."""

import asyncio
from contextlib import nullcontext
from dataclasses import dataclass

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import ActionFinished
from duckflow.domain.frozen import replace
from duckflow.domain.work.checks import checks_line
from duckflow.evaluation.checks import Checks
from duckflow.evaluation.test_outcomes import failed_tests
from duckflow.loops.acting.action_log import ActionLog, failure_of
from duckflow.loops.acting.approvals import permit_of
from duckflow.loops.acting.command_effects import CommandEffects
from duckflow.loops.acting.gate import ReviewedCall
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.session import SessionPart
from duckflow.loops.undo.snapshots import Snapshots
from duckflow.safety.files.access import Access
from duckflow.safety.files.atomic import ChangedMeanwhile
from duckflow.tools.catalogue import ToolResult
from duckflow.tools.code.intelligence import CodeIntelligence
from duckflow.tools.shell import RUN


@dataclass(eq=False)
class ActionRunner(SessionPart):
    """Runs calls that the gate allowed, and records them in `log`."""

    log: ActionLog
    _effects: CommandEffects
    _snapshots: Snapshots
    _checks: Checks
    _code: CodeIntelligence
    _hooks: Hooks

    async def run(
        self, reviewed: ReviewedCall, *, task_id: str | None, may_ask: bool, by_user: bool
    ) -> ActionFinished:
        """Run a call. Without `may_ask`, it comes from the program or the user: no hook sees its result."""
        (action, tool, args), approval, proposal = reviewed
        await self._session.pause()
        access = self.log.start(action, task_id, tool.effect, permit_of(approval), proposal.write)
        target = next(iter(tool.targets(args)), None)
        self._effects.begin_request(access.owner.request_id)
        self._code.begin_request(access.owner.request_id)
        try:
            result = await self._call(reviewed, access)
            result = await self._effects.settle(
                self._state, reviewed.call, result, access, may_ask=may_ask, by_user=by_user
            )
            result = _with_test_outcome(action, result)
            result = result.with_lines(await self._code.after(access.changes))
            if may_ask:
                result = await self._hooks.after(reviewed.call, result)
        except ToolError as error:
            meanwhile = approval is not None and isinstance(error, ChangedMeanwhile)
            if meanwhile and not access.workspace.paths.made_of(access.changes):
                again = ToolResult(text=f"{error} The user is asked again.", then=(action,))
                return self.log.end(action, "refused", again, (), task_id)
            failed = failure_of(error, target)
            return self.log.end(action, "failed", failed, access.changes, task_id, by_user=by_user)
        except asyncio.CancelledError:
            stopped = ToolResult(text="Stopped by the user while it ran.", path=target)
            self.log.end(action, "unknown", stopped, access.changes, task_id)
            raise
        ended = self.log.end(action, "ok", result, access.changes, task_id, by_user=by_user)
        await self.log.keep_whole(ended, result)
        return ended

    async def _call(self, reviewed: ReviewedCall, access: Access) -> ToolResult:
        tool = reviewed.call.tool
        watches = tool.effect == "execute" and not await self._effects.on_copies()
        async with self._snapshots.around(access) if watches else nullcontext():
            result = await tool.run(reviewed.call.args, access)
            if tool.effect in ("write", "delete") and not tool.by_program:
                await self._effects.show(access.changes)
            if tool.effect != "write" or tool.by_program:
                return result
            paths = tuple(dict.fromkeys(change.path for change in access.changes))
            said = checks_line(await self._checks.after_edit(paths) if paths else ())
            return replace(result, text=f"{result.text}\n{said}") if said else result


def _with_test_outcome(action: Action, result: ToolResult) -> ToolResult:
    """Add that tests failed, if a command ran some and its exit code hides it (J3)."""
    if action.operation != RUN or result.exit_code != 0:
        return result
    failed = failed_tests(str(action.args.get("command", "")), result.whole or result.text)
    told = f"Tests failed, whatever the exit code says: {failed}"
    return replace(result, tests_failed=failed).with_lines(told) if failed else result
