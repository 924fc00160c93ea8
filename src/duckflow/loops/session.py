"""The session: the one owner of the state. What happens is stored, then applied, then shown."""

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
    """Holds the newest state. Recording blocks for one durable write and can't be cancelled half-way."""

    def __init__(self, log: EventLog, state: AgentState) -> None:
        self._log = log
        self._subscribers: list[Subscriber] = []
        self.state = state

    @classmethod
    def load(cls, log: EventLog, session_id: str) -> "Session":
        """The session as its events tell it."""
        session = cls(log, AgentState(session_id=session_id))
        session._take(log.load(session_id))
        return session

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

    def _take(self, recorded: Sequence[Recorded]) -> None:
        for one in recorded:
            self.state = apply(self.state, one)

    def next_evidence_id(self) -> str:
        """The id of the next thing found."""
        return f"e{self.state.evidence_count + 1}"

    def recover(self) -> None:
        """After a crash: an action that was running is told as unknown, and nothing of its list goes on."""
        running = self.state.running
        if running is None:
            return
        self.record(
            ActionFinished(
                action_id=running.action_id,
                operation=running.action.operation,
                outcome="unknown",
                text=_UNKNOWN,
                evidence_id=self.next_evidence_id(),
                not_run=tuple(action.operation for action in self.state.queue),
            )
        )
