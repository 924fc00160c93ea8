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
from duckflow.evaluation.known_tests import KnownRun, is_test_command, passed_whole
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.evaluation.related_tests import is_test
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.judging.case_evidence import CaseEvidenceCollector
from duckflow.loops.session import SessionPart
from duckflow.tools.shell import RUN

_NAME = 100
_PROSE = (".md", ".rst")

WHY = "These are the project's own tests: they show whether the work is done."


@dataclass(eq=False)
class Verification(SessionPart):
    """Runs the verifying command. `tests` is None if only the user can set it."""

    _dispatcher: Dispatcher
    _collector: CaseEvidenceCollector
    _tests: ProjectTests | None
    _asked: str = ""
    _compared: tuple[tuple[str, int], CheckResult] | None = None

    async def prepare(self) -> bool:
        """Queue the project's tests the first time files have changed. Return whether they were queued."""
        request = self._state.request
        undecided = self._state.verify is None and not self._asked
        if self._tests is None or not undecided or request is None or not _changed_code(request):
            return False
        if request.objective.failures_accepted:
            return False
        command = await asyncio.to_thread(self._tests.find)
        wanted = await asyncio.to_thread(self._tests.wanted, command) if command else False
        if wanted is not None:
            self._session.record(VerifySet(command=command if wanted else ""))
            return False
        self._asked = command
        if (ran := self._ran(command)) and ran.revision == request.objective.revision:
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
        own = (
            bool(command) and self._tests is not None and await asyncio.to_thread(self._tests.find) == command
        )
        if own and not _changed_code(request):
            return None  # the project's tests say nothing about an answer or a text
        if request.objective.failures_accepted and (own or not command):
            return None  # the user knows that tests fail
        if not command:
            ran = _last_test_run(request)
            if ran is None or not self._tells(ran):
                return None
            result = await self._compare(self._result(ran.command, ran), ran.command)
            if result.good and ran.revision != request.objective.revision:
                return result  # later changes have cured it
            failed = replace(self._result(ran.command, ran), compared=False) if result.good else result
            own_code = any(not is_test(path) for path in request.changed if not is_cache(path))
            return replace(failed, binding=failed.binding and failed.compared and own_code)
        ran = self._ran(command)
        if ran is None or ran.revision != request.objective.revision:
            why = "It shows whether the request is met."
            await self._dispatcher.run_now([Action(operation=RUN, args={"command": command}, reasoning=why)])
            ran = _last(self._state, command)
        if own and ran is not None and self._can_not_start(ran):
            return None  # a missing test runner says nothing about the work
        result = self._result(command, ran)
        if result.good or not own:
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

    def _ran(self, command: str) -> CommandRun | None:
        """Return the last run of a command, or a passed run of the same tests with the files as they are."""
        request = self._state.request
        now = (
            [one for one in request.commands if one.revision == request.objective.revision] if request else []
        )
        runs = (KnownRun(one.command, self._shown(one), one.evidence_id) for one in now)
        same = passed_whole(command, runs)
        return next((one for one in now if one.evidence_id == same), None) or _last(self._state, command)

    def _result(self, command: str, ran: CommandRun | None) -> CheckResult:
        passed = ran is not None and ran.good
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
        return not ran.good and not self._can_not_start(ran)

    def _can_not_start(self, ran: CommandRun) -> bool:
        return runner_is_missing(ran.exit_code, self._shown(ran))

    def _shown(self, ran: CommandRun) -> str:
        transcript = reversed(self._state.transcript)
        return next((entry.text for entry in transcript if entry.evidence_id == ran.evidence_id), "")

    async def _settle(self) -> None:
        """Remember whether the user let the project's tests run, which means that they may run again."""
        if not self._asked or self._tests is None:
            return
        command, self._asked = self._asked, ""
        ran = self._ran(command)
        if ran is not None and self._can_not_start(ran):
            self._session.record(VerifySet(command=""))
            return
        wanted = ran is not None
        await asyncio.to_thread(self._tests.remember, command, wanted=wanted)
        self._session.record(VerifySet(command=command if wanted else ""))


def _changed_code(request: Request) -> bool:
    """Return whether a request changed more than texts for people and caches."""
    return any(not path.casefold().endswith(_PROSE) and not is_cache(path) for path in request.changed)


def _last_test_run(request: Request) -> CommandRun | None:
    """Return the last test run, if the request has changed files."""
    runs = (run for run in reversed(request.commands) if is_test_command(run.command))
    return next(runs, None) if request.changed else None


def _last(state: AgentState, command: str) -> CommandRun | None:
    runs = state.request.commands if state.request else ()
    return next((ran for ran in reversed(runs) if ran.command.strip() == command.strip()), None)
