"""The session: the only owner of the state. Each event is stored, then applied, then shown."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from pydantic import JsonValue

from duckflow.domain.commands import RunShellCommand, SayMessage
from duckflow.domain.events import ErrorReported, Event, Rewound, StoredEvent
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import rewind
from duckflow.domain.state import AgentState, new_state
from duckflow.safety.redaction.events import LiveRedaction, redact_event, said_by_user
from duckflow.safety.redaction.redactor import Redactor
from duckflow.store.event_log import SqliteEventLog


class Subscriber(Protocol):
    """Receives every event and live update."""

    def __call__(self, what: StoredEvent | LiveUpdate, /) -> None: ...


class Pause(Protocol):
    """Waits before each model call and action, so that another process can take over the run there."""

    async def __call__(self) -> None: ...


async def go_straight_on() -> None:
    """Never wait; for sessions that no other process can take over."""


class Session:
    """Holds the state. It is built from the logged events and changes only through `record`.

    Recording blocks until the events are on the disk, and can't be cancelled.
    """

    def __init__(
        self,
        log: SqliteEventLog,
        session_id: str,
        redactor: Redactor | None = None,
        pause: Pause = go_straight_on,
    ) -> None:
        self._log = log
        self.pause = pause
        self.redactor = redactor or Redactor()
        self._live = LiveRedaction(self.redactor)
        self._told_of_secret = False
        self._subscribers: list[Subscriber] = []
        self._changed = asyncio.Event()
        self._recent: list[Event] = []
        self.unheard: list[SayMessage | RunShellCommand] = []
        """Messages and `!commands` typed during the work, in order, for its next loop (C6)."""
        self.state = new_state(session_id)
        self._take(log.load(session_id))

    def subscribe(self, subscriber: Subscriber) -> None:
        """Send every later event and live update to a user interface."""
        self._subscribers.append(subscriber)

    def record(self, *events: Event) -> None:
        """Store events without their secrets, apply them to the state, and show them."""
        recorded = self._log.append(self.state.session_id, self._redacted(events))
        self._take(recorded)
        self._recent += [one.event for one in recorded]
        for one in recorded:
            self.show(one)

    def steer(self, typed: SayMessage | RunShellCommand) -> None:
        """Keep a message or a command for the next loop of the current work."""
        self.unheard.append(typed)
        self._changed.set()

    @property
    def words(self) -> SayMessage | None:
        """The first message that the model has not seen yet."""
        return next((one for one in self.unheard if isinstance(one, SayMessage)), None)

    def notify(self, key: str, **values: JsonValue) -> None:
        """Record a notice for the user."""
        self.record(ErrorReported(key=key, values=values, notice=True))

    def take_events(self) -> tuple[Event, ...]:
        """Return the events that were recorded since the last call."""
        events, self._recent = tuple(self._recent), []
        return events

    def show(self, what: StoredEvent | LiveUpdate) -> None:
        """Send an update to all subscribers. Text that may be part of a secret is held back."""
        for shown in self._live.take(what):
            for subscriber in self._subscribers:
                subscriber(shown)

    async def wait_until(self, met: Callable[[AgentState], bool]) -> None:
        """Wait until a condition is true of the state."""
        while not met(self.state):
            self._changed.clear()
            await self._changed.wait()

    def next_evidence_id(self) -> str:
        """Return the id of the next piece of evidence."""
        return f"e{self.state.evidence_count + 1}"

    def _redacted(self, events: Sequence[Event]) -> Sequence[Event]:
        """Remove secrets from events. Tell the user once if their own messages contained a secret."""
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


@dataclass(eq=False)
class SessionPart:
    """Part of a session: it reads the state, and records events to change it."""

    _session: Session

    @property
    def _state(self) -> AgentState:
        return self._session.state
