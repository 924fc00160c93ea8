"""The verifying command: set by the user, or the project's tests once the user has agreed."""

import asyncio
from dataclasses import dataclass

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionQueued, VerifySet
from duckflow.domain.files.caches import is_cache
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState, CommandRun, Request
from duckflow.domain.text import one_line
from duckflow.domain.work.checks import CheckResult
from duckflow.evaluation.facts import failing_lines, runner_is_missing
from duckflow.evaluation.known_tests import is_test_command
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.evaluation.related_tests import is_test
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.judging.case_evidence import CaseEvidenceCollector
from duckflow.loops.session import SessionPart
from duckflow.tools.shell import RUN

_NAME = 100

WHY = "These are the project's own tests: they show whether the work is done."


@dataclass(eq=False)
class Verification(SessionPart):
    """Runs the verifying command. `tests` is None if the user can't be asked about the project's tests."""

    _dispatcher: Dispatcher
    _collector: CaseEvidenceCollector
    _tests: ProjectTests | None
    _asked: str = ""
    _compared: tuple[tuple[str, int], CheckResult] | None = None

    async def prepare(self) -> bool:
        """Queue the project's tests the first time files have changed. Return whether they were queued."""
        request = self._state.request
        undecided = self._state.verify is None and not self._asked
        if self._tests is None or not undecided or request is None or not request.changed:
            return False
        command = await asyncio.to_thread(self._tests.find)
        wanted = await asyncio.to_thread(self._tests.wanted, command) if command else False
        if wanted is not None:
            self._session.record(VerifySet(command=command if wanted else ""))
            return False
        self._asked = command
        if (ran := _last(self._state, command)) and ran.revision == request.objective.revision:
            return False  # the model has just run them
        queued = Action(operation=RUN, args={"command": command}, reasoning=WHY)
        self._session.record(ActionQueued(actions=(queued,)))
        return True

    async def run(self) -> CheckResult | None:
        """Run the verifying command. Without one, repeat the last test run of the model if it failed.

        A failure does not count if it is older than the request, unless the user set the command (J3).
        """
        await self._settle()
        command, request = self._state.verify, self._state.request
        if request is None:
            return None
        if not command:
            ran = _last_test_run(request)
            if ran is None or not self._tells(ran):
                return None
            result = await self._compare(self._result(ran.command, ran), ran.command)
            if result.good and ran.revision != request.objective.revision:
                return result  # later changes have cured it
            failed = replace(self._result(ran.command, ran), compared=False) if result.good else result
            own = any(not is_test(path) for path in request.changed if not is_cache(path))
            return replace(failed, binding=failed.binding and failed.compared and own)
        ran = _last(self._state, command)
        if ran is None or ran.revision != request.objective.revision:
            why = "It shows whether the request is met."
            await self._dispatcher.run_now([Action(operation=RUN, args={"command": command}, reasoning=why)])
            ran = _last(self._state, command)
        result = self._result(command, ran)
        if result.good or self._tests is None or await asyncio.to_thread(self._tests.find) != command:
            return result
        compared = await self._compare(result, command)
        return result if compared.good else compared

    async def _compare(self, failed: CheckResult, command: str) -> CheckResult:
        """Find out whether a run failed in the same way before the request, once for each run."""
        request = self._state.request
        run = (failed.evidence_id, request.objective.revision if request else 0)
        if request is not None and (self._compared is None or self._compared[0] != run):
            self._compared = run, await self._collector.compare(request, failed, command)
        return self._compared[1] if self._compared else failed

    def _result(self, command: str, ran: CommandRun | None) -> CheckResult:
        passed = ran is not None and ran.exit_code == 0
        lines = failing_lines(self._shown(ran)) if ran and not passed else ()
        return CheckResult(
            kind="test",
            name=one_line(command, _NAME),
            state="passed" if passed else "failed",
            detail="\n".join(lines),
            binding=True,
            evidence_id=ran.evidence_id if ran else "",
        )

    def _tells(self, ran: CommandRun) -> bool:
        return ran.exit_code != 0 and not runner_is_missing(ran.exit_code, self._shown(ran))

    def _shown(self, ran: CommandRun) -> str:
        transcript = reversed(self._state.transcript)
        return next((entry.text for entry in transcript if entry.evidence_id == ran.evidence_id), "")

    async def _settle(self) -> None:
        """Remember whether the user let the project's tests run, which means that they may run again."""
        if not self._asked or self._tests is None:
            return
        command, self._asked = self._asked, ""
        ran = _last(self._state, command)
        if ran is not None and runner_is_missing(ran.exit_code, self._shown(ran)):
            self._session.record(VerifySet(command=""))  # a missing test runner says nothing about the work
            return
        wanted = ran is not None
        await asyncio.to_thread(self._tests.remember, command, wanted=wanted)
        self._session.record(VerifySet(command=command if wanted else ""))


def _last_test_run(request: Request) -> CommandRun | None:
    """Return the last test run, if the request has changed files."""
    runs = (run for run in reversed(request.commands) if is_test_command(run.command))
    return next(runs, None) if request.changed else None


def _last(state: AgentState, command: str) -> CommandRun | None:
    runs = state.request.commands if state.request else ()
    return next((ran for ran in reversed(runs) if ran.command.strip() == command.strip()), None)
