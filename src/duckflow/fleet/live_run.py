"""A run that this process works on: a session in a separate copy of the repository."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from duckflow.app.opening import Opening
from duckflow.app.places import DATABASE
from duckflow.config.loading import LoadedSettings, load
from duckflow.config.places import state_dir
from duckflow.domain.commands import AskAboutUnknown, ContinueWork, SayMessage, SessionCommand
from duckflow.domain.errors import UserError
from duckflow.domain.events import (
    DecisionMade,
    Event,
    RequestFinished,
    SessionStarted,
    StoredEvent,
    UsageReported,
)
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.fleet import RunState
from duckflow.fleet.checkout import Checkout
from duckflow.fleet.questions import WAITING, question_key, unknown_actions
from duckflow.fleet.runs import AGAIN, FleetRun, Runs, report_of
from duckflow.fleet.worker_log import WorkerLog
from duckflow.loops.chat import EXIT_CODES
from duckflow.session.host import SessionHost
from duckflow.store.event_log import SqliteEventLog

_PATIENCE_S = 60


class LiveRun:
    """Work on a run, from the time a worker takes it to its end or its next question."""

    def __init__(self, runs: Runs, run: FleetRun, log: WorkerLog) -> None:
        self.run = run
        self.leaving = False
        """True if no further step may begin, because the worker ends."""
        self.resting = asyncio.Event()
        """Set once no step is running."""
        self._host: SessionHost | None = None
        self._runs = runs
        self._log = log
        self._checkout = Checkout(run)
        self._keeping = asyncio.Lock()
        self._changes = 0
        self._began = time.monotonic()

    async def work(self, machine: str) -> dict[str, object]:
        """Work to the end or the next question; return the new values for the run's row."""
        host = self._host = await self._open(machine)
        self._began = time.monotonic()
        try:
            outcome = await self._work(host)
        finally:
            await host.aclose()
        state = host.state
        patch = await asyncio.to_thread(self._checkout.changes)
        over = outcome not in WAITING
        return {
            "state": _state(outcome),
            "outcome": outcome,
            "patch": patch,
            "branch": await asyncio.to_thread(self._checkout.publish) if over and patch else "",
            **self.spent(),
            "question": question_key(state, self._runs.events(self.run.id)),
            "report": report_of(state, outcome).model_dump_json(),
        }

    async def pause(self) -> None:
        """Save changes before each model call and action, so that another machine can continue the run."""
        async with self._keeping:
            state = self._host.state if self._host else None
            changes = sum(len(one.changes) for one in state.change_sets) if state else 0
            if changes != self._changes:
                patch = await asyncio.to_thread(self._checkout.changes)
                values: dict[str, object] = {"patch": patch, **self.spent()}
                self._runs.note(self.run, values)
                self._changes = changes
        if self.leaving:
            self.resting.set()
            await asyncio.Event().wait()

    def spent(self) -> dict[str, float | None]:
        """Return the time and money spent on the run so far."""
        usage = self._host.state.usage.values() if self._host else ()
        prices = [used.cost_usd for used in usage if used.cost_usd is not None]
        return {"worked_s": self._worked_s(), "cost_usd": sum(prices) if prices else self.run.cost_usd}

    def _worked_s(self) -> float:
        return self.run.worked_s + time.monotonic() - self._began

    async def _open(self, machine: str) -> SessionHost:
        patch = await asyncio.to_thread(self._runs.patch, self.run.id)
        moved = self.run.machine not in ("", machine)
        await asyncio.to_thread(self._checkout.prepare, patch, moved=moved)
        options = self.run.options
        flags = {
            "llm.model": options.model,
            "mode": options.mode,
            "duck_pacemaker.dynamic_limits.hard_max_loops": options.max_loops,
            "duck_pacemaker.budget.max_cost_usd": options.max_cost,
        }
        loaded = load(self._checkout.folder, trusted=options.trust, flags=flags)
        # A worker whose lease expired may need a moment to notice, and still hold the folder.
        for _ in range(_PATIENCE_S):
            try:
                return await self._open_session(loaded)
            except UserError as error:
                if error.key != "lock.held":
                    raise
            await asyncio.sleep(1)
        return await self._open_session(loaded)

    async def _open_session(self, loaded: LoadedSettings) -> SessionHost:
        earlier = self._runs.events(self.run.id)
        log = SharedLog(state_dir() / DATABASE, self._runs, self.run, self._log)
        opening = Opening(
            loaded,
            self._checkout.folder,
            self.run.id,
            keeps_mode=True,
            model_first=True,
            verify=self.run.options.verify if not earlier else None,
            log=log,
            pause=self.pause,
            asked=_asked(earlier),
        )
        try:
            return await SessionHost.open(opening, driven=True)
        except UserError:
            log.close()
            raise

    async def _work(self, host: SessionHost) -> RequestOutcome:
        command = self._first_command(host.state)
        if command is None:
            request = host.state.request or host.state.finished
            return (request and request.outcome) or "interrupted"
        receipt = host.send(command)
        left = self.run.options.minutes * 60 - self._worked_s()
        await asyncio.wait([receipt.done], timeout=max(left, 0))
        if not receipt.done.done():
            await host.stop()
        return receipt.done.result().outcome or "interrupted"

    def _first_command(self, state: AgentState) -> SessionCommand | None:
        """Return the command that continues the run; None if it has ended or still waits for an answer."""
        earlier = self._runs.events(self.run.id)
        if unknown := unknown_actions(earlier):
            return AskAboutUnknown(what="; ".join(unknown))
        key = question_key(state, earlier)
        answer = self._runs.answer(self.run.id, key) if key else None
        if state.request is None:
            ended = state.finished is not None and not self._again(earlier)
            return None if ended else SayMessage(text=self.run.request)
        if answer is None:
            waits = bool(key) and state.request.outcome in WAITING
            return None if waits else ContinueWork()
        return answer

    def _again(self, earlier: Sequence[StoredEvent]) -> bool:
        """Return True if a retry was requested after the request last ended."""
        kind, _, seen = self.run.question.partition(":")
        ended = [one.seq for one in earlier if isinstance(one.event, RequestFinished)]
        return kind == AGAIN and bool(ended) and ended[-1] <= int(seen)


def _state(outcome: RequestOutcome) -> RunState:
    if outcome in WAITING:
        return "waiting"
    return "failed" if EXIT_CODES[outcome] else "done"


def _asked(earlier: Sequence[StoredEvent]) -> Mapping[str, int]:
    """Count the answers of models by type of output; an unrecorded decision is requested again."""
    asked: Counter[str] = Counter()
    decided = 0
    for event in (one.event for one in earlier):
        if isinstance(event, UsageReported):
            asked[event.output] += 1
        elif isinstance(event, (DecisionMade, RequestFinished)):
            decided = asked["Decision"]
        elif isinstance(event, SessionStarted):
            asked["Decision"] = decided
    return {**asked, "Decision": decided}


class SharedLog(SqliteEventLog):
    """Event log that writes to the fleet's database first, so that every worker knows about begun actions.

    The log of this machine gets the same events, for `duckflow sessions` and the audit.
    """

    def __init__(self, path: Path, shared: Runs, run: FleetRun, log: WorkerLog) -> None:
        super().__init__(path)
        self._shared = shared
        self._run = run
        self._log = log

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[StoredEvent]:
        """Store all events in both logs, or in neither if the fleet's database refuses them."""
        if events:
            self._shared.append(self._run, self._last.get(session_id, 0) + 1, events)
            self._log.happened(self._run.id, events)
        return super().append(session_id, events)

    def load(self, session_id: str) -> Sequence[StoredEvent]:
        """Return every event of the run, from all machines, oldest first."""
        shared = self._shared.events(session_id)
        known = len(super().load(session_id))
        super().append(session_id, [one.event for one in shared[known:]])
        return shared
