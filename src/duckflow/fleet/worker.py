"""`duckflow fleet worker`: takes runs from the queue, works on them, and takes over from silent workers."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.config.places import checkouts_dir
from duckflow.config.settings import FleetSettings
from duckflow.domain.errors import UserError
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.live_run import LiveRun
from duckflow.fleet.notices import Notices
from duckflow.fleet.questions import question_text
from duckflow.fleet.runs import UNDER_WAY, LostRun, RunReport, Runs, taken_text
from duckflow.fleet.worker_log import WorkerLog
from duckflow.i18n.catalogue import text

PARALLEL = 2
"""Runs that a worker works on at the same time by default. A run that waits for an answer has no worker."""

LEASE_S = 30.0
"""Seconds without a sign of life after which a worker's runs go to others."""

LOST = 75
"""Exit code of a worker that lost a run to another one, or has no database."""

_BEATS = 6
"""Number of signs of life that a worker gives during one lease."""
_PATIENCE_S = 10.0
_SILENT = FleetSettings.model_construct()
_LOOK_S = 1.0
_LOCAL_LOOK_S = 0.2


class _Held(NamedTuple):
    live: LiveRun
    task: asyncio.Task[None]


def leave() -> None:
    """End this process at once, because another worker may write to the same runs."""
    os._exit(LOST)


class FleetWorker:
    """One worker of the fleet, and the runs that it works on."""

    def __init__(
        self,
        runs: Runs,
        *,
        machine: str = "",
        lease_s: float = LEASE_S,
        parallel: int = PARALLEL,
        notices: FleetSettings = _SILENT,
        on_lost: Callable[[], None] = leave,
    ) -> None:
        self._runs = runs
        self._log = WorkerLog(runs)
        self._notices = Notices(runs, notices, self._log)
        self._delivery: asyncio.Task[None] | None = None
        self._parallel = parallel
        self._name = f"{socket.gethostname()}:{os.getpid()}"
        self._over_budget = False
        self._machine = machine or f"{socket.gethostname()}:{checkouts_dir()}"
        self._lease_s = lease_s
        self._on_lost = on_lost
        self._held: dict[str, _Held] = {}
        self._stopped = threading.Event()

    async def work(self, *, until_idle: bool) -> None:
        """Work until a signal or, with `until_idle`, until every run has ended or waits for a person."""
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, stop.set)
        beating = threading.Thread(target=self._beat, daemon=True)
        beating.start()
        self._log.report("", "started", worker=self._name, parallel=self._parallel)
        look_s = _LOCAL_LOOK_S if self._runs.database.sqlite else _LOOK_S
        while not stop.is_set():
            with suppress(UserError, SQLAlchemyError):  # the database may be back soon
                room = len(self._held) < self._parallel and not self._over_budget
                if room and await self.take() is not None:
                    continue
                await self._deliver()
                if await self._is_over(until_idle=until_idle):
                    break
            with suppress(TimeoutError):
                async with asyncio.timeout(look_s):
                    await stop.wait()
        await self._rest()
        self._stopped.set()
        await asyncio.to_thread(beating.join)
        for one in self._held.values():
            with suppress(LostRun):
                await asyncio.to_thread(self._runs.note, one.live.run, {"state": "queued"})
                self._log.report(one.live.run.id, "put_back", worker=self._name)
        self._log.report("", "stopped", worker=self._name)

    async def take(self) -> asyncio.Task[None] | None:
        """Begin to work on the next run; return the task, or None if the queue is empty."""
        run = await asyncio.to_thread(self._runs.take, self._machine, self._lease_s, self._name)
        if run is None:
            return None
        self._log.write(run.id, taken_text(run, self._name))
        live = LiveRun(self._runs, run, self._log)
        task = asyncio.create_task(self._work_on(live))
        self._held[run.id] = _Held(live, task)
        return task

    async def _work_on(self, live: LiveRun) -> None:
        run = live.run
        try:
            try:
                values = await live.work(self._machine)
            except LostRun:
                raise
            except Exception as error:  # noqa: BLE001 - whatever broke this run must not end the others
                if not isinstance(error, UserError):
                    traceback.print_exc(file=sys.stderr)
                said = text(error.key, **error.values) if isinstance(error, UserError) else repr(error)
                report = RunReport(exit_code=1, error=said).model_dump_json()
                values = {"state": "failed", "outcome": "error", "report": report}
            self._held.pop(run.id, None)
            said = self._end_text(run.id, values)
            self._runs.note(run, {**values, **self._notices.due_values()}, said)
            self._log.write(run.id, said)
        except LostRun:
            if not self._is_cancelled(run.id):
                self._log.report(run.id, "lost", worker=self._name)
                self._on_lost()
        finally:
            self._log.forget(run.id)
            self._held.pop(run.id, None)
            live.resting.set()

    def _end_text(self, run_id: str, values: Mapping[str, object]) -> str:
        """Return the line of the log for a run that asks or has ended, from the new values of its row."""
        worked_s, usd = values.get("worked_s"), values.get("cost_usd")
        spent = {
            "minutes": round(worked_s / 60, 1) if isinstance(worked_s, float) else "–",
            "cost": f"${usd:.4f}" if isinstance(usd, float) else "–",
        }
        if values["state"] == "waiting":
            return text("fleet.log.asks", asks=question_text(self._runs.state(run_id)), **spent)
        report = RunReport.model_validate_json(str(values["report"]))
        result = values.get("branch") or report.error or text("fleet.log.no_branch")
        return text("fleet.log.ended", state=text(f"fleet.state.{values['state']}"), result=result, **spent)

    async def _deliver(self) -> None:
        """Deliver a notice that is due, beside the runs."""
        if not self._notices.wanted or (self._delivery is not None and not self._delivery.done()):
            return
        notice = await asyncio.to_thread(self._notices.claim)
        if notice is not None:
            self._delivery = asyncio.create_task(self._notices.deliver(notice))

    def _is_cancelled(self, run_id: str) -> bool:
        try:
            return self._runs.find(run_id).state == "cancelled"
        except (UserError, SQLAlchemyError):
            return False

    async def _rest(self) -> None:
        """Begin no further steps, and wait up to _PATIENCE_S for the running ones."""
        self._begin_no_steps()
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                for one in [*self._held.values()]:
                    await one.live.resting.wait()

    def _begin_no_steps(self) -> None:
        for one in [*self._held.values()]:
            one.live.leaving = True

    async def _is_over(self, *, until_idle: bool) -> bool:
        """Return True if this worker must end: by the fleet's budget, or because nothing is left to do."""
        if self._over_budget:
            self._begin_no_steps()
            resting = all(one.live.resting.is_set() for one in self._held.values())
            return resting and (until_idle or bool(self._held))
        if not until_idle or self._held or await asyncio.to_thread(self._notices.pending):
            return False
        return not UNDER_WAY & (await asyncio.to_thread(self._runs.counts)).keys()

    def _check_budget(self) -> None:
        """Note whether the cost of all runs has reached the fleet's limit, and log when that changes."""
        limit = self._runs.limits().cost_usd
        over = 0 < limit <= self._runs.spent_usd()
        if over != self._over_budget:
            self._over_budget = over
            if over:
                self._begin_no_steps()
            self._log.report("", "over_budget" if over else "in_budget", worker=self._name, limit=limit)

    def _beat(self) -> None:
        seen = time.monotonic()
        while not self._stopped.wait(self._lease_s / _BEATS):
            try:
                self.show_life()
                self._check_budget()
                seen = time.monotonic()
            except (UserError, SQLAlchemyError):  # the database may be back soon
                if time.monotonic() - seen > self._lease_s:
                    self._on_lost()

    def show_life(self) -> None:
        """Extend the leases of the runs that this worker works on; stop those that were cancelled."""
        for run_id, (live, task) in [*self._held.items()]:
            if self._runs.extend(live.run, **live.spent()) or run_id not in self._held:
                continue
            if not self._is_cancelled(run_id):
                self._on_lost()
            task.get_loop().call_soon_threadsafe(task.cancel)


def run_worker(
    url: str,
    *,
    until_idle: bool,
    lease_s: float = LEASE_S,
    parallel: int = PARALLEL,
    notices: FleetSettings = _SILENT,
) -> None:
    """Work, then end the process without waiting for steps that are not finished.

    Another worker continues their runs as it would after a crash.
    """

    async def work() -> None:
        database = FleetDatabase(url)
        database.migrate()
        worker = FleetWorker(Runs(database), lease_s=lease_s, parallel=parallel, notices=notices)
        await worker.work(until_idle=until_idle)
        sys.stdout.flush()
        os._exit(0)

    asyncio.run(work())
