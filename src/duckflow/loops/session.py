"""The session: the one owner of the state. What happens is stored, then applied, then shown."""

import asyncio
from collections.abc import Callable, Sequence

from duckflow.domain.events import ActionFinished, Event, Glimpse, Recorded
from duckflow.domain.ports import EventLog
from duckflow.domain.reduce import apply
from duckflow.domain.state import AgentState

Subscriber = Callable[[Recorded | Glimpse], None]

_UNKNOWN = (
    "The program was stopped while this ran, so it may or may not have happened. "
    "Look at the files before you go on."
)


class Session:
    """Holds the newest state. Recording blocks for one durable write and can't be cancelled half-way.

    Both loops read `state` here and write through `record`, so what one changes the other sees at once.
    """

    def __init__(self, log: EventLog, state: AgentState) -> None:
        self._log = log
        self._subscribers: list[Subscriber] = []
        self._changed = asyncio.Event()
        self.state = state

    @classmethod
    def load(cls, log: EventLog, session_id: str) -> "Session":
        """The session as its events tell it."""
        session = cls(log, AgentState(session_id=session_id))
        session._take(log.load(session_id))
        return session

    def current(self) -> AgentState:
        """The newest state, for those who ask again each time."""
        return self.state

    def subscribe(self, subscriber: Subscriber) -> None:
        """From now on the subscriber gets every event, and glimpses of what is not an event yet."""
        self._subscribers.append(subscriber)

    def record(self, *events: Event) -> None:
        """Store the events, make them the state, show them."""
        recorded = self._log.append(self.state.session_id, events)
        self._take(recorded)
        for one in recorded:
            self.show(one)

    def show(self, what: Recorded | Glimpse) -> None:
        """Let all subscribers see it."""
        for subscriber in self._subscribers:
            subscriber(what)

    async def wait_until(self, met: Callable[[AgentState], bool]) -> None:
        """Come back when the state is so."""
        while not met(self.state):
            self._changed.clear()
            await self._changed.wait()

    def next_evidence_id(self) -> str:
        """The id of the next thing found."""
        return f"e{self.state.evidence_count + 1}"

    def recover(self) -> None:
        """After a crash: what was running is told as unknown, and nothing of the chat's list goes on."""
        for running in (self.state.running, self.state.task_running):
            if running is None:
                continue
            left = self.state.queue if running.task_id is None else ()
            self.record(
                ActionFinished(
                    action_id=running.action_id,
                    operation=running.action.operation,
                    outcome="unknown",
                    text=_UNKNOWN,
                    evidence_id=self.next_evidence_id(),
                    not_run=tuple(action.operation for action in left),
                    task_id=running.task_id,
                )
            )

    def _take(self, recorded: Sequence[Recorded]) -> None:
        for one in recorded:
            self.state = apply(self.state, one)
        self._changed.set()
