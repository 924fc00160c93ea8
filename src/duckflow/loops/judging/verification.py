"""The verifying command: set by the user, or the project's tests once the user has agreed."""

import asyncio
from dataclasses import dataclass

from duckflow.domain.decision import Action
from duckflow.domain.events import ActionQueued, VerifySet
from duckflow.domain.state import AgentState, CommandRun
from duckflow.evaluation.facts import failing_lines, runner_is_missing
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.session import SessionPart
from duckflow.tools.shell import RUN

WHY = "These are the project's own tests: they show whether the work is done."


@dataclass(eq=False)
class Verification(SessionPart):
    """Runs the verifying command. `tests` is None if the user can't be asked about the project's tests."""

    _dispatcher: Dispatcher
    _tests: ProjectTests | None
    _asked: str = ""

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
        queued = Action(operation=RUN, args={"command": command}, reasoning=WHY)
        self._session.record(ActionQueued(actions=(queued,)))
        return True

    async def run(self) -> bool | None:
        """Run the verifying command. Return whether it succeeded; None if there is no such command."""
        await self._settle()
        command = self._state.verify
        if not command:
            return None
        request, known = self._state.request, _last(self._state, command)
        if known is not None and request is not None and known.revision == request.objective.revision:
            return known.exit_code == 0  # no file changed since that run
        why = "It shows whether the request is met."
        await self._dispatcher.run_now([Action(operation=RUN, args={"command": command}, reasoning=why)])
        ran = _last(self._state, command)
        return ran is not None and ran.exit_code == 0

    def failures(self) -> tuple[str, ...]:
        """Return the failures listed in the output of the last run."""
        ran = _last(self._state, self._state.verify) if self._state.verify else None
        if ran is None or ran.exit_code == 0:
            return ()
        return (*failing_lines(self._shown(ran)), f"`{ran.command}` fails")

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


def _last(state: AgentState, command: str) -> CommandRun | None:
    runs = state.request.commands if state.request else ()
    return next((ran for ran in reversed(runs) if ran.command.strip() == command.strip()), None)
