"""A session as its clients use it: they send commands, and receive updates and lists to display."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, Protocol

from duckflow.domain import events
from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.errors import UsageError
from duckflow.domain.events import Event, StoredEvent
from duckflow.domain.extensions import Extensions, ServerReport
from duckflow.domain.frozen import Frozen
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import Picture, PromptUse
from duckflow.domain.questions.approval import ApprovalScope
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory


class EngineStatus(NamedTuple):
    """Facts for the status bar that the state does not contain."""

    window: int | None = None
    """Size of the model's context window; None until it is known."""
    sandbox: str | None = None
    """Sandbox of commands; None while unknown, "none" if there is no sandbox."""
    branch: str = ""
    """Current git branch of the folder, or the beginning of the commit; empty outside a repository."""
    all_vitals: bool = False
    """True if the user always wants the whole vitals bar."""


class EarlierSession(NamedTuple):
    """Summary of an earlier session."""

    session_id: str
    title: str
    updated: datetime


class Permission(NamedTuple):
    """Kind of action that is allowed without asking, and for how long."""

    kind: ApprovalScope
    lasts: Literal["session", "here", "everywhere"] = "session"
    since: str = ""


class PastMessage(NamedTuple):
    """An earlier message of the user, by its number from 1 and the number of its event."""

    number: int
    seq: int
    at: datetime
    text: str


def find_message(messages: Sequence[PastMessage], number: int) -> PastMessage:
    """Return the message with this number; UsageError if it does not exist."""
    if not 1 <= number <= len(messages):
        raise UsageError("rewind.no_message", number=number, count=len(messages))
    return messages[number - 1]


class StatusChanged(Frozen):
    """Work began or ended, or the facts for the status bar changed."""

    busy: bool


_WORKS = (
    events.UserMessage,
    events.ApprovalAnswered,
    events.ConsultationAnswered,
    events.DecisionMade,
    events.ActionStarted,
)
_RESTS = (events.RequestFinished, events.SessionStarted)


def works_after(event: Event, before: bool) -> bool:  # noqa: FBT001 - a state and the next one
    """Return whether the session is working after an event. Most events do not change that (`before`)."""
    return isinstance(event, _WORKS) if isinstance(event, _WORKS + _RESTS) else before


SessionUpdate = StoredEvent | LiveUpdate | StatusChanged
"""A stored event, a live update, or a change of the status."""


class SessionClient(Protocol):
    """A session in this process or another one. The default methods suit one in another process."""

    @property
    def state(self) -> AgentState:
        """The newest state."""
        ...

    @property
    def busy(self) -> bool:
        """True while a command is being carried out."""
        ...

    @property
    def status(self) -> EngineStatus:
        """Facts for the status bar."""
        return EngineStatus()

    @property
    def extensions(self) -> Extensions:
        """Extensions of the user, and of the project if it is trusted."""
        return Extensions()

    def send(self, command: SessionCommand) -> Awaitable[SessionResult]:
        """Send a command at once. Awaiting it returns the result or raises its UserError."""
        ...

    @property
    def waiting(self) -> Sequence[str]:
        """Lines that were sent during the work and that it has not taken yet, oldest first."""
        return ()

    def take_back(self) -> Sequence[str]:
        """Remove and return the lines that wait."""
        return ()

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield all later updates, until the session ends."""
        ...

    async def proposal(self) -> str | None:
        """Return the text that the open approval would write or run; None if the user can't edit it."""
        return None

    def keep_pictures(self, pictures: Sequence[bytes]) -> tuple[Picture, ...]:  # noqa: ARG002 - as above
        """Keep pasted pictures for the next message."""
        raise UsageError("attach.not_here", session=self.state.session_id)

    async def diff(self, *, session: bool = False) -> str:  # noqa: ARG002 - for clients that can tell
        """Return the changes since the last request began or, with `session`, since the session began."""
        raise UsageError("attach.not_here", session=self.state.session_id)

    async def context(self) -> PromptUse:
        """Return how much of the context window each part of the next prompt uses."""
        raise UsageError("attach.not_here", session=self.state.session_id)

    def messages(self) -> Sequence[PastMessage]:
        """Return the user's messages, oldest first."""
        ...

    def files(self) -> Sequence[str]:
        """Return the file names that can follow an @."""
        return ()

    def models(self) -> Sequence[str]:
        """Return the names of models to suggest."""
        return ()

    def sessions(self) -> Sequence[EarlierSession]:
        """Return earlier sessions of this folder, newest first."""
        return ()

    def conversations(self) -> Mapping[str, str]:
        """Return what was said in each session of this folder, by session id; empty for a remote session."""
        return {}

    def search(self, words: str) -> Sequence[tuple[EarlierSession, str]]:  # noqa: ARG002 - for clients that can
        """Return sessions of this folder in which someone said these words, each with that text."""
        return ()

    def memories(self) -> Sequence[Memory]:
        """Return the memories that apply to this folder, newest first."""
        ...

    def permissions(self) -> Sequence[Permission]:
        """Return the kinds of actions that are allowed without asking, in a stable order."""
        return [Permission(kind) for kind in self.state.allowed]

    def servers(self) -> Sequence[ServerReport]:
        """Return the status of the configured MCP servers."""
        return ()

    def settings(self, *, every: bool = False) -> Sequence[str]:  # noqa: ARG002 - for clients that have any
        """Return a line for each setting that differs from its default, or for each setting."""
        return ()
