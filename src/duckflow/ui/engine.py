"""What the conversation needs of the engine, and nothing else."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from duckflow.domain.extensions import Extensions, ServerReport
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.model import EffortChoice, PromptUse
from duckflow.domain.modes import Mode
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory
from duckflow.domain.work.outcomes import RequestOutcome


class Surroundings(NamedTuple):
    """What the status bar tells that is not in the state: the model's window, and what holds commands."""

    window: int | None = None
    sandbox: str | None = None
    """None while it is not known, "none" if there is none."""


class EarlierSession(NamedTuple):
    """An earlier session, in a line."""

    session_id: str
    title: str
    updated: datetime


class Engine(Protocol):
    """The work, and what the commands of the conversation ask for."""

    @property
    def state(self) -> AgentState:
        """The newest state."""
        ...

    async def say(self, said: str) -> RequestOutcome:
        """Work on a message."""
        ...

    async def answer(self, answer: AnswerApproval) -> RequestOutcome:
        """Go on after an approval was answered."""
        ...

    async def proposal(self) -> str | None:
        """The whole text that the open question would write or run; None if it can't be changed."""
        ...

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        """Go on after a consultation was answered."""
        ...

    async def go_on(self) -> RequestOutcome:
        """Go on with what waits for a report of the background."""
        ...

    async def run_command(self, command: str) -> bool:
        """Run a shell command of the user's own; False if commands can't be run."""
        ...

    @property
    def around(self) -> Surroundings:
        """What the status bar tells besides the state."""
        ...

    @property
    def extensions(self) -> Extensions:
        """What the user, and a project they trust, brought along."""
        ...

    def cancel_tasks(self) -> bool:
        """Stop the background; False if nothing runs there."""
        ...

    async def stop_commands(self) -> None:
        """Stop the commands that go on, and ask about what they did."""
        ...

    def rate(self, rating: int) -> bool:
        """Keep how the user liked the last request, from 1 to 10; False if there was none."""
        ...

    def set_mode(self, mode: Mode) -> None:
        """Ask more, or less, from now on."""
        ...

    async def set_model(self, name: str) -> None:
        """Think with another model from now on; UserError if it can't be had."""
        ...

    def set_effort(self, effort: EffortChoice) -> None:
        """Let models think more, or less, from now on."""
        ...

    async def undo(self, wanted: str) -> UndoReport:
        """Take changes back: a number of actions, "all" of the last request, or "redo"."""
        ...

    def messages(self) -> Sequence[tuple[int, int, datetime, str]]:
        """What the user said, oldest first: number, event, when, text."""
        ...

    async def rewind(self, number: int, *, conversation: bool, files: bool) -> UndoReport:
        """Go back to before a message."""
        ...

    def fork(self, number: int | None) -> str:
        """A new session that begins as this one is, or was before a message; its id."""
        ...

    async def diff(self, *, session: bool) -> str:
        """What changed since the last request, or the session, began."""
        ...

    async def context(self) -> PromptUse:
        """What would be in the prompt now, and what that takes."""
        ...

    def files(self) -> Sequence[str]:
        """The files there are, as last looked at."""
        ...

    def models(self) -> Sequence[str]:
        """Names of models worth suggesting."""
        ...

    def sessions(self) -> Sequence[EarlierSession]:
        """Earlier sessions of this folder, the last one first."""
        ...

    def memories(self) -> Sequence[Memory]:
        """What is kept for later sessions that counts in this folder, the newest first."""
        ...

    def servers(self) -> Sequence[ServerReport]:
        """The MCP servers that are set, and how they are."""
        ...

    async def prompt(self, name: str, argument: str) -> str:
        """The text of a prompt of an MCP server, by `server.name`; UserError if it can't be had."""
        ...

    def forget(self, wanted: Sequence[int]) -> int:
        """Delete some of it, by number, and say how many; UserError if there is no such number."""
        ...

    def settings(self) -> Sequence[str]:
        """Every setting that is not as it comes, in a line."""
        ...
