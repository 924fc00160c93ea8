"""The session: the one owner of the state. What happens is stored, then applied, then shown."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from duckflow.domain.events import ErrorReported, Event, Rewound, StoredEvent
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import rewind
from duckflow.domain.state import AgentState, new_state
from duckflow.safety.redaction.events import LiveRedaction, redact_event, said_by_user
from duckflow.safety.redaction.redactor import Redactor

Subscriber = Callable[[StoredEvent | LiveUpdate], None]
Pause = Callable[[], Awaitable[None]]


class EventLog(Protocol):
    """Where a session's events are kept; what `append` returned survives a kill."""

    def append(self, session_id: str, events: Sequence[Event]) -> Sequence[StoredEvent]:
        """Store all of them durably, in order, or none."""
        ...

    def load(self, session_id: str) -> Sequence[StoredEvent]:
        """Every event of the session, oldest first."""
        ...


async def go_straight_on() -> None:
    """Nobody takes this session step by step."""


class Session:
    """Holds the newest state. Recording blocks for one durable write and can't be cancelled half-way.

    Both loops read `state` here and write through `record`, so what one changes the other sees at once.
    Secrets end here: what is stored, becomes state, or is shown has markers in their place.
    """

    def __init__(
        self,
        log: EventLog,
        state: AgentState,
        redactor: Redactor | None = None,
        pause: Pause = go_straight_on,
    ) -> None:
        self._log = log
        self.pause = pause
        """Waited for before a model is asked and before an action begins: there a run can be taken over."""
        self.redactor = redactor or Redactor()
        self._live = LiveRedaction(self.redactor)
        self._told_of_secret = False
        self._subscribers: list[Subscriber] = []
        self._changed = asyncio.Event()
        self._recent: list[Event] = []
        self.state = state

    @classmethod
    def load(
        cls,
        log: EventLog,
        session_id: str,
        redactor: Redactor | None = None,
        pause: Pause = go_straight_on,
    ) -> "Session":
        """The session as its events tell it."""
        session = cls(log, new_state(session_id), redactor, pause)
        session._take(log.load(session_id))
        return session

    def subscribe(self, subscriber: Subscriber) -> None:
        """For user interfaces: they get every event and every live update from now on."""
        self._subscribers.append(subscriber)

    def record(self, *events: Event) -> None:
        """Store the events without their secrets, make them the state, show them."""
        recorded = self._log.append(self.state.session_id, self._redacted(events))
        self._take(recorded)
        self._recent += [one.event for one in recorded]
        for one in recorded:
            self.show(one)

    def take_events(self) -> tuple[Event, ...]:
        """The events recorded since this was last called."""
        events, self._recent = tuple(self._recent), []
        return events

    def show(self, what: StoredEvent | LiveUpdate) -> None:
        """Let all subscribers see it; of a text in pieces, what can't be part of a secret."""
        for shown in self._live.take(what):
            for subscriber in self._subscribers:
                subscriber(shown)

    async def wait_until(self, met: Callable[[AgentState], bool]) -> None:
        """Come back when the state is so."""
        while not met(self.state):
            self._changed.clear()
            await self._changed.wait()

    def next_evidence_id(self) -> str:
        """The id of the next thing found."""
        return f"e{self.state.evidence_count + 1}"

    def _redacted(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events without secrets; once a session, the user is told when their own words had one."""
        clean = [redact_event(self.redactor, event) for event in events]
        hidden = any(said_by_user(one) and one != shown for one, shown in zip(events, clean, strict=True))
        if hidden and not self._told_of_secret:
            self._told_of_secret = True
            clean.append(ErrorReported(key="redaction.hidden", notice=True))
        return clean

    def _take(self, recorded: Sequence[StoredEvent]) -> None:
        for one in recorded:
            if isinstance(one.event, Rewound) and one.event.conversation:
                self.state = rewind(self.state, one, self._log.load(self.state.session_id))
            else:
                self.state = apply(self.state, one)
        self._changed.set()
