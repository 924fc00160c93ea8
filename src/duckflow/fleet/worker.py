"""`duckflow fleet worker`: takes runs from the queue, shows that it lives, takes over from the dead."""

import asyncio
import os
import secrets
import signal
import socket
import sys
import threading
import time
from concurrent.futures import Future

import sqlalchemy as sa
from dbos import DBOS
from sqlalchemy.exc import SQLAlchemyError

from duckflow.config.places import checkouts_dir
from duckflow.domain.errors import UserError
from duckflow.fleet.database import FleetDatabase, runs, workers
from duckflow.fleet.fleet import APPLICATION, QUEUE, VERSION, WORKFLOW
from duckflow.fleet.live_runs import LiveRuns, Progress, leave
from duckflow.fleet.runs import UNDER_WAY, Runs

AT_ONCE = 2
"""Runs one worker works on at the same time; those that wait for an answer are with no worker."""

LEASE_S = 30.0
"""Seconds without a sign of life after which a worker's runs go to others."""

_BEATS = 6
_POLL_S = 1.0
_PATIENCE_S = 10.0
_SETTLING = 25
_HOME_POLL_S = 0.2


class FleetWorker:
    """One process of the fleet."""

    def __init__(self, url: str, lease_s: float = LEASE_S) -> None:
        self._database = FleetDatabase(url)
        self._lease_s = lease_s
        host = socket.gethostname()
        self.id = f"{host}-{os.getpid()}-{secrets.token_hex(3)}"
        self._runs = LiveRuns(Runs(self._database), f"{host}:{checkouts_dir()}")
        self._stopped = threading.Event()

    async def work(self, *, until_idle: bool) -> None:
        """Work until told to stop; or until nothing is left to do but what waits for people."""
        self._database.migrate()
        self._sign_on()
        await self._launch()
        loop = asyncio.get_running_loop()
        stop = asyncio.Event()
        for wish in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(wish, stop.set)
        beating = threading.Thread(target=self._beat, args=(loop,), daemon=True)
        beating.start()
        while not stop.is_set() and not (until_idle and await self._idle()):
            try:
                async with asyncio.timeout(_HOME_POLL_S):
                    await stop.wait()
            except TimeoutError:
                pass
        await self._runs.rest(_PATIENCE_S)
        await self._settled()
        self._stopped.set()
        await asyncio.to_thread(beating.join)
        await asyncio.to_thread(self._sign_off)

    async def _settled(self) -> None:
        """Let DBOS write down what has ended; if it takes long, the next worker finds it out."""
        for _ in range(_SETTLING):
            pending = await DBOS.list_workflows_async(status="PENDING", executor_id=self.id)
            if len(pending) <= len(self._runs.live):
                return
            await asyncio.sleep(_HOME_POLL_S)

    async def _launch(self) -> None:
        runs = self._runs

        @DBOS.step()
        async def advance(run_id: str, leg: int) -> Progress:
            return await runs.advance(run_id, leg)

        @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
        async def request(run_id: str, leg: int) -> Progress:  # pyright: ignore[reportUnusedFunction]
            while (progress := await advance(run_id, leg))["state"] == "working":
                pass
            return progress

        DBOS(
            config={
                "name": APPLICATION,
                "system_database_url": self._database.url,
                "db_engine_kwargs": self._database.engine_options,
                "executor_id": self.id,
                "application_version": VERSION,
                "log_level": "ERROR",
                "sys_db_pool_size": 4,
                "run_migrations": False,
            }
        )
        DBOS.launch()
        await DBOS.register_queue_async(
            QUEUE,
            worker_concurrency=AT_ONCE,
            partition_worker_concurrency=AT_ONCE,
            polling_interval_sec=_HOME_POLL_S if self._database.sqlite else _POLL_S,
        )

    async def _idle(self) -> bool:
        if self._runs.live:
            return False
        return not UNDER_WAY & (await asyncio.to_thread(self._runs.runs.counts)).keys()

    def _sign_on(self) -> None:
        with self._database.begin() as connection:
            row = sa.insert(workers).values(id=self.id, beat=self._database.now, dead=False)
            connection.execute(row)

    def _sign_off(self) -> None:
        """What is still in hand goes to others at once."""
        with self._database.begin() as connection:
            connection.execute(sa.update(workers).where(workers.c.id == self.id).values(dead=True))

    def _beat(self, loop: asyncio.AbstractEventLoop) -> None:
        last_seen = time.monotonic()
        while not self._stopped.is_set():
            try:
                if not self._show_life():
                    leave()
                last_seen = time.monotonic()
                self._take_over()
                self._stop_cancelled(loop)
            except (UserError, SQLAlchemyError):  # a database that is back soon is no reason to give up
                if time.monotonic() - last_seen > self._lease_s:
                    leave()
            self._stopped.wait(self._lease_s / _BEATS)

    def _show_life(self) -> bool:
        """Say that this worker lives; False if the others have given it up."""
        with self._database.begin() as connection:
            now = self._database.now
            mine = sa.update(workers).where(workers.c.id == self.id, workers.c.dead == sa.false())
            alive = connection.execute(mine.values(beat=now)).rowcount == 1
            silent = workers.c.beat < now - self._lease_s
            connection.execute(sa.update(workers).where(silent).values(dead=True))
        return alive

    def _take_over(self) -> None:
        """Queue the runs of the dead again; if two do it at once, a run that was taken stays where it is."""
        with self._database.begin() as connection:
            dead = [row.id for row in connection.execute(sa.select(workers.c.id).where(workers.c.dead))]
        for one in dead:
            DBOS._recover_pending_workflows([one])  # pyright: ignore[reportPrivateUsage]
            with self._database.begin() as connection:
                connection.execute(sa.delete(workers).where(workers.c.id == one))

    def _stop_cancelled(self, loop: asyncio.AbstractEventLoop) -> None:
        live = list(self._runs.live)
        with self._database.begin() as connection:
            query = sa.select(runs.c.id).where(runs.c.id.in_(live), runs.c.state == "cancelled")
            cancelled = list(connection.scalars(query)) if live else []
        for run in cancelled:
            _: Future[None] = asyncio.run_coroutine_threadsafe(self._runs.cancel(run), loop)


def run_worker(url: str, *, until_idle: bool, lease_s: float = LEASE_S) -> None:
    """Work, and end the process: DBOS's threads, and runs in the middle of a step, are not waited for.

    What they were doing is found by the next worker, as after a crash; there is only one way to end.
    """

    async def work() -> None:
        await FleetWorker(url, lease_s).work(until_idle=until_idle)
        sys.stdout.flush()
        os._exit(0)

    asyncio.run(work())
