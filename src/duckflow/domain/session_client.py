"""A session as its clients see it: commands in, updates out, and a few lists to look at."""

from collections.abc import AsyncIterator, Awaitable, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from duckflow.domain.commands import SessionCommand, SessionResult
from duckflow.domain.errors import UsageError
from duckflow.domain.events import StoredEvent
from duckflow.domain.extensions import Extensions, ServerReport
from duckflow.domain.frozen import Frozen
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import PromptUse
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory


class EngineStatus(NamedTuple):
    """Facts for the status bar that are not in the state."""

    window: int | None = None
    """Size of the model's window, once it is known."""
    sandbox: str | None = None
    """None while it is not known, "none" if commands run without one."""


class EarlierSession(NamedTuple):
    """An earlier session, in a line."""

    session_id: str
    title: str
    updated: datetime


class PastMessage(NamedTuple):
    """A message of the user's that can be gone back to: its number, from 1, and its place in the session."""

    number: int
    seq: int
    at: datetime
    text: str


def find_message(messages: Sequence[PastMessage], number: int) -> PastMessage:
    """The message of this number; UsageError if there is none."""
    if not 1 <= number <= len(messages):
        raise UsageError("rewind.no_message", number=number, count=len(messages))
    return messages[number - 1]


class StatusChanged(Frozen):
    """Work began or ended, or the facts for the status bar changed."""

    busy: bool


SessionUpdate = StoredEvent | LiveUpdate | StatusChanged
"""An event with its number and time, a live update, or news of the work itself."""


class SessionClient(Protocol):
    """A session, in this process or in another one. The defaults are those of a session that is elsewhere."""

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
        """Extensions of the user, and of a project they trust."""
        return Extensions()

    def send(self, command: SessionCommand) -> Awaitable[SessionResult]:
        """Send a command at once; await its result, or the UserError that it ended in."""
        ...

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Everything that happens from now on, to the end of the session."""
        ...

    async def proposal(self) -> str | None:
        """The whole text that the open question would write or run; None if it can't be changed."""
        return None

    async def diff(self, *, session: bool = False) -> str:  # noqa: ARG002 - for clients that can tell
        """Changes since the last request, or the session, began."""
        raise UsageError("attach.not_here", session=self.state.session_id)

    async def context(self) -> PromptUse:
        """The prompt as it would be now, by its parts."""
        raise UsageError("attach.not_here", session=self.state.session_id)

    def messages(self) -> Sequence[PastMessage]:
        """The user's messages, oldest first."""
        ...

    def files(self) -> Sequence[str]:
        """Names that can follow an @."""
        return ()

    def models(self) -> Sequence[str]:
        """Names of models worth suggesting."""
        return ()

    def sessions(self) -> Sequence[EarlierSession]:
        """Earlier sessions of this folder, the last one first."""
        return ()

    def memories(self) -> Sequence[Memory]:
        """Memories that count in this folder, the newest first."""
        ...

    def servers(self) -> Sequence[ServerReport]:
        """The MCP servers of the settings, and how they are."""
        return ()

    def settings(self) -> Sequence[str]:
        """Every setting that differs from its default, in a line."""
        return ()
