"""A run that this process works on: its session, in its own copy of the repository, one step at a time."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from duckflow.app.foundation import DurableSession
from duckflow.app.opening import Opening
from duckflow.app.places import DATABASE
from duckflow.config.loading import LoadedSettings, load
from duckflow.config.places import state_dir
from duckflow.domain.commands import (
    AnswerInWords,
    AskAboutUnknown,
    ContinueWork,
    SayMessage,
    SessionCommand,
    hash_of,
)
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
from duckflow.fleet.checkout import Checkout
from duckflow.fleet.questions import WAITING, question_key, unknown_actions
from duckflow.fleet.runs import AGAIN, FleetRun, Runs, report_of
from duckflow.fleet.stepper import Stepper
from duckflow.session.host import SessionHost
from duckflow.store.event_log import SqliteEventLog

_PATIENCE_S = 60


class LiveRun:
    """Opened when it is taken up, closed when it ends or waits for somebody."""

    def __init__(
        self, runs: Runs, run: FleetRun, checkout: Checkout, host: SessionHost, stepper: Stepper
    ) -> None:
        self.run = run
        self.host = host
        self._runs = runs
        self._checkout = checkout
        self._stepper = stepper
        self._revision = 0
        self._worked_s = run.worked_s
        command = self._first_command()
        self._work = host.send(command).done if command else None

    @classmethod
    async def open(cls, runs: Runs, run: FleetRun, machine: str) -> "LiveRun":
        """Have the copy, the session and the model ready; what changed elsewhere is brought here."""
        checkout = Checkout(run)
        patch = await asyncio.to_thread(runs.patch, run.id)
        await asyncio.to_thread(checkout.prepare, patch, moved=run.machine not in ("", machine))
        options = run.options
        flags = {
            "llm.model": options.model,
            "mode": options.mode,
            "duck_pacemaker.dynamic_limits.hard_max_loops": options.max_loops,
            "duck_pacemaker.budget.max_cost_usd": options.max_cost,
        }
        loaded = load(checkout.folder, trusted=options.trust, flags=flags)
        stepper = Stepper()
        host = await _open_alone(loaded, checkout.folder, runs, run, stepper)
        return cls(runs, run, checkout, host, stepper)

    @property
    def state(self) -> AgentState:
        """The session's."""
        return self.host.state

    async def step(self) -> bool:
        """One model call or one action; whether the run ends here or waits. What changed is kept for all."""
        began = time.monotonic()
        left = self.run.options.minutes * 60 - self._worked_s
        try:
            async with asyncio.timeout(max(left, 0)):
                ended = self._work is None or await self._stepper.step(self._work)
        except TimeoutError:
            await self.stop()
            ended = True
        self._worked_s += time.monotonic() - began
        if not ended:
            await self._keep()
        return ended

    async def stop(self) -> None:
        """Break the work off; what ran is written down as unknown."""
        await self.host.stop()

    async def close(self) -> None:
        """Give everything back."""
        self._stepper.free()
        await self.host.aclose()

    def outcome(self) -> RequestOutcome:
        """How the work ended; raises what broke it."""
        ended = self._work.result().outcome if self._work else _outcome(self.state)
        return ended or "interrupted"

    async def settle(self, outcome: RequestOutcome) -> dict[str, object]:
        """What the run has come to, for its row: the branch once it is over, the changes in any case."""
        patch = await asyncio.to_thread(self._checkout.changes)
        over = outcome not in WAITING
        branch = await asyncio.to_thread(self._checkout.publish) if over and patch else ""
        key = question_key(self.state, self._runs.events(self.run.id))
        kept: dict[str, object] = {"patch": patch, "branch": branch, "worked_s": self._worked_s}
        return {**kept, "question": key, "report": report_of(self.state, outcome).model_dump_json()}

    async def _keep(self) -> None:
        """Keep what changed where another machine can go on with it."""
        revision = sum(len(one.changes) for one in self.state.change_sets)
        if revision != self._revision:
            patch = await asyncio.to_thread(self._checkout.changes)
            self._runs.note(self.run, worked_s=self._worked_s, patch=patch)
            self._revision = revision

    def _first_command(self) -> SessionCommand | None:
        """The command that takes the run up again; None if it has ended, or waits for an answer as before."""
        state, earlier = self.state, self._runs.events(self.run.id)
        if unknown := unknown_actions(earlier):
            return AskAboutUnknown(what="; ".join(unknown))
        key = question_key(state, earlier)
        said = self._runs.answer(self.run.id, key) if key else None
        if state.request is None:
            ended = state.finished is not None and not self._again(earlier)
            return None if ended else SayMessage(text=self.run.request)
        if said is None:
            waits = bool(key) and state.request.outcome in WAITING
            return None if waits else ContinueWork()
        asked = state.approval or state.consultation
        return AnswerInWords(shown=hash_of(asked), text=said) if asked else SayMessage(text=said)

    def _again(self, earlier: Sequence[StoredEvent]) -> bool:
        """Whether a request that ended is to be tried once more, and was not yet."""
        kind, _, seen = self.run.question.partition(":")
        ended = [one.seq for one in earlier if isinstance(one.event, RequestFinished)]
        return kind == AGAIN and bool(ended) and ended[-1] <= int(seen)


def _outcome(state: AgentState) -> RequestOutcome | None:
    """The outcome of a request that needs no more work."""
    request = state.request or state.finished
    return request.outcome if request else None


def _asked(earlier: Sequence[StoredEvent]) -> Mapping[str, int]:
    """How often a model was asked for what; a decision that was not written down is asked for again."""
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


async def _open_alone(
    loaded: LoadedSettings, folder: Path, runs: Runs, run: FleetRun, stepper: Stepper
) -> SessionHost:
    """Open it once the folder is free: a worker that was given up for dead may need a moment to notice."""
    left = _PATIENCE_S
    while True:
        earlier = runs.events(run.id)
        log = SharedLog(state_dir() / DATABASE, runs, run)
        try:
            opening = Opening(
                loaded,
                folder,
                run.id,
                keeps_mode=True,
                model_first=True,
                verify=run.options.verify if not earlier else None,
                durable=DurableSession(log=log, pause=stepper.pause, asked=_asked(earlier)),
            )
            return await SessionHost.open(opening, driven=True)
        except UserError as error:
            log.close()
            left -= 1
            if error.key != "lock.held" or not left:
                raise
            await asyncio.sleep(1)


class SharedLog(SqliteEventLog):
    """What begins is known to all before it begins: an action that is found without its end is asked about.

    The log at home has the same, for `duckflow sessions` and the audit; it catches up where it is behind.
    """

    def __init__(self, path: Path, shared: Runs, run: FleetRun) -> None:
        super().__init__(path)
        self._shared = shared
        self._run = run

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[StoredEvent]:
        """Store all of them for everyone, or none."""
        if events:
            self._shared.append(self._run, self._last.get(session_id, 0) + 1, events)
        return super().append(session_id, events)

    def load(self, session_id: str) -> Sequence[StoredEvent]:
        """Every event of the run, oldest first, wherever it was worked on."""
        shared = self._shared.events(session_id)
        known = len(super().load(session_id))
        super().append(session_id, [one.event for one in shared[known:]])
        return shared
