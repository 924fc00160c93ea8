"""What one worker has in hand: the runs it works on, taken a step further each time DBOS says so."""

import asyncio
import os
import sys
import traceback
from collections.abc import Callable
from contextlib import suppress

from duckflow.domain.errors import UserError
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.fleet.live_run import LiveRun
from duckflow.fleet.questions import WAITING
from duckflow.fleet.runs import FleetRun, LostRun, RunReport, Runs, RunState
from duckflow.i18n.catalogue import text
from duckflow.loops.chat import EXIT_CODES

LOST = 75
"""The exit code of a worker that was given up for dead, or has no database: others have its runs."""

Progress = dict[str, object]
"""What a step leaves in DBOS's tables: how the run stands, and its events by number, not by content."""


def leave() -> None:
    """End this process at once: whatever it would write now, somebody else may be writing."""
    os._exit(LOST)


class LiveRuns:
    """Opens runs, takes them a step further, and writes down what came of them."""

    def __init__(self, runs: Runs, machine: str, on_lost: Callable[[], None] = leave) -> None:
        self.runs = runs
        self.live: dict[str, LiveRun] = {}
        self._machine = machine
        self._on_lost = on_lost
        self._busy = 0
        self._resting = asyncio.Event()
        self._resting.set()
        self._leaving = False

    async def advance(self, run_id: str, leg: int) -> Progress:
        """One model call or one action of a run; never again once the worker leaves."""
        if self._leaving:
            await asyncio.Event().wait()
        self._busy += 1
        self._resting.clear()
        try:
            return await self._advance(run_id, leg)
        except LostRun:
            return await self._lose(run_id)
        finally:
            self._busy -= 1
            if not self._busy:
                self._resting.set()

    async def rest(self, patience_s: float) -> None:
        """Begin no further step, and come back when those under way have ended, or patience has."""
        self._leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(patience_s):
                await self._resting.wait()

    async def _advance(self, run_id: str, leg: int) -> Progress:
        live = self.live.get(run_id) or await self._open(run_id, leg)
        if live is None:
            return {"state": "over"}
        first = live.state.seq + 1
        if await live.step():
            return await self._end(live, first)
        return {"state": "working", "events": [first, live.state.seq]}

    async def cancel(self, run_id: str) -> None:
        """Somebody wants this run stopped: its command is killed, and nothing more is written."""
        live = self.live.get(run_id)
        if live is not None:
            await live.stop()

    async def _open(self, run_id: str, leg: int) -> LiveRun | None:
        run = await asyncio.to_thread(self.runs.take, run_id, leg, self._machine)
        if run is None:
            return None
        try:
            self.live[run_id] = await LiveRun.open(self.runs, run, self._machine)
        except UserError as error:
            self._fail(run, text(error.key, **error.values))
            return None
        return self.live[run_id]

    async def _end(self, live: LiveRun, first: int) -> Progress:
        """It is over, or somebody is asked: the copy stays, everything else is given back."""
        try:
            outcome = live.outcome()
            await live.close()
            values = await live.settle(outcome)
        except LostRun:
            raise
        except Exception as error:  # noqa: BLE001 - whatever broke this run must not take the others with it
            traceback.print_exc(file=sys.stderr)
            said = text(error.key, **error.values) if isinstance(error, UserError) else repr(error)
            self.live.pop(live.run.id, None)
            self._fail(live.run, said)
            return {"state": "failed", "events": [first, live.state.seq]}
        self.live.pop(live.run.id, None)
        state = _state(outcome)
        self.runs.note(live.run, state=state, outcome=outcome, **values)
        return {"state": state, "events": [first, live.state.seq]}

    async def _lose(self, run_id: str) -> Progress:
        """Cancelled, and all is well; or somebody else has it, and this process must end."""
        live = self.live.pop(run_id, None)
        if self.runs.find(run_id).state != "cancelled":
            self._on_lost()
        if live is not None:
            with suppress(LostRun):
                await live.close()
        return {"state": "cancelled"}

    def _fail(self, run: FleetRun, said: str) -> None:
        report = RunReport(exit_code=1, error=said).model_dump_json()
        self.runs.note(run, state="failed", outcome="error", report=report)


def _state(outcome: RequestOutcome) -> RunState:
    if outcome in WAITING:
        return "waiting"
    return "failed" if EXIT_CODES[outcome] else "done"
