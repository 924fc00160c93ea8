"""`duckflow fleet worker`: takes runs from the queue, works on them, and takes over from silent workers."""

import asyncio
import os
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from duckflow.config.places import checkouts_dir
from duckflow.domain.errors import UserError
from duckflow.fleet.database import FleetDatabase
from duckflow.fleet.live_run import LiveRun
from duckflow.fleet.runs import UNDER_WAY, LostRun, RunReport, Runs
from duckflow.i18n.catalogue import text

AT_ONCE = 2
"""Runs that one worker works on at the same time. A run that waits for an answer has no worker."""

LEASE_S = 30.0
"""Seconds without a sign of life after which a worker's runs go to others."""

LOST = 75
"""Exit code of a worker that lost a run to another one, or has no database."""

_BEATS = 6
"""Number of signs of life that a worker gives during one lease."""
_PATIENCE_S = 10.0
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
        on_lost: Callable[[], None] = leave,
    ) -> None:
        self._runs = runs
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
        look_s = _LOCAL_LOOK_S if self._runs.database.sqlite else _LOOK_S
        while not stop.is_set():
            with suppress(UserError, SQLAlchemyError):  # the database may be back soon
                if len(self._held) < AT_ONCE and await self.take() is not None:
                    continue
                if until_idle and await self._idle():
                    break
            with suppress(TimeoutError):
                async with asyncio.timeout(look_s):
                    await stop.wait()
        await self._rest()
        self._stopped.set()
        await asyncio.to_thread(beating.join)
        for one in self._held.values():
            with suppress(LostRun):
                await asyncio.to_thread(self._runs.note, one.live.run, state="queued")

    async def take(self) -> asyncio.Task[None] | None:
        """Begin to work on the next run; return the task, or None if the queue is empty."""
        run = await asyncio.to_thread(self._runs.take, self._machine, self._lease_s)
        if run is None:
            return None
        live = LiveRun(self._runs, run)
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
            self._runs.note(run, **values)
        except LostRun:
            if not self._is_cancelled(run.id):
                self._on_lost()
        finally:
            self._held.pop(run.id, None)
            live.resting.set()

    def _is_cancelled(self, run_id: str) -> bool:
        try:
            return self._runs.find(run_id).state == "cancelled"
        except (UserError, SQLAlchemyError):
            return False

    async def _rest(self) -> None:
        """Begin no further steps, and wait up to _PATIENCE_S for the running ones."""
        for one in self._held.values():
            one.live.leaving = True
        with suppress(TimeoutError):
            async with asyncio.timeout(_PATIENCE_S):
                for one in [*self._held.values()]:
                    await one.live.resting.wait()

    async def _idle(self) -> bool:
        return not self._held and not UNDER_WAY & (await asyncio.to_thread(self._runs.counts)).keys()

    def _beat(self) -> None:
        seen = time.monotonic()
        while not self._stopped.wait(self._lease_s / _BEATS):
            try:
                self.show_life()
                seen = time.monotonic()
            except (UserError, SQLAlchemyError):  # the database may be back soon
                if time.monotonic() - seen > self._lease_s:
                    self._on_lost()

    def show_life(self) -> None:
        """Extend the leases of the runs that this worker works on; stop those that were cancelled."""
        for run_id, (live, task) in [*self._held.items()]:
            if self._runs.extend(live.run) or run_id not in self._held:
                continue
            if not self._is_cancelled(run_id):
                self._on_lost()
            task.get_loop().call_soon_threadsafe(task.cancel)


def run_worker(url: str, *, until_idle: bool, lease_s: float = LEASE_S) -> None:
    """Work, then end the process without waiting for steps that are not finished.

    Another worker continues their runs as it would after a crash.
    """

    async def work() -> None:
        database = FleetDatabase(url)
        database.migrate()
        await FleetWorker(Runs(database), lease_s=lease_s).work(until_idle=until_idle)
        sys.stdout.flush()
        os._exit(0)

    asyncio.run(work())
