"""A command of the user on a copy of the folder, without a model: its changes are applied on request (O7)."""

import os
import secrets
from contextlib import AsyncExitStack
from typing import Any

from duckflow.app.app import make_dispatcher
from duckflow.app.extensions import LoadedExtensions
from duckflow.app.opening import Opening
from duckflow.app.resources import SessionResources
from duckflow.config.version import __version__
from duckflow.domain.decision import Action
from duckflow.domain.errors import UsageError
from duckflow.domain.events import (
    ActionQueued,
    ApprovalAnswered,
    RequestFinished,
    SessionStarted,
    UserMessage,
)
from duckflow.domain.hosts import Host
from duckflow.domain.questions.approval import Approval, allowed_hosts
from duckflow.loops.session import Subscriber
from duckflow.plugins import Plugins
from duckflow.tools.catalogue import Catalogue
from duckflow.tools.shell import RUN, shell_tools


class Trial:
    """A session with one command. Undo, audit and recovery work as in any other."""

    def __init__(self, opening: Opening, listener: Subscriber) -> None:
        """Open the session. UserError if the folder is unsuitable."""
        self._closing = AsyncExitStack()
        nothing = LoadedExtensions(hooks=(), plugins=Plugins(), checkers=())
        self._base = base = SessionResources(opening, os.environ, nothing, self._closing)
        self._session, self._folder = base.session, os.path.realpath(opening.folder)
        base.shell.contacted = base.session.record
        base.shell.granted = lambda: allowed_hosts((*base.session.state.allowed, *base.grants.kinds()))
        self._dispatcher = make_dispatcher(base, Catalogue(shell_tools(base.shell, base.session.show)))
        base.session.subscribe(listener)

    @property
    def session_id(self) -> str:
        """Id of the session, by which the question can be answered and the changes undone later."""
        return self._session.state.session_id

    @property
    def question(self) -> Approval | None:
        """The open question about changes, if there is one."""
        return self._session.state.approval

    async def run(
        self, command: str, *, network: bool = False, hosts: tuple[Host, ...] = ()
    ) -> Approval | None:
        """Run the command on a copy. Return the question about its changes, None if there are none."""
        if not (await self._base.shell.sandbox()).copies:
            raise UsageError("trial.no_copies")
        session_id = self.session_id
        started = SessionStarted(
            session_id=session_id,
            workspace=self._folder,
            model="",
            model_reason="trial.no_model",
            mode="ask",
            version=__version__,
        )
        args: dict[str, Any] = {"command": command, "timeout_s": self._base.shell.settings.max_timeout_s}
        args |= {"network": network} if network else {}
        args |= {"hosts": list(hosts)} if hosts else {}
        action = Action(operation=RUN, args=args, reasoning="")
        said = UserMessage(request_id=secrets.token_hex(4), text=f"$ {command}")
        self._session.record(started, said, ActionQueued(actions=(action,)))
        asked = await self._go_on()
        if asked is not None and asked.action.operation == RUN:  # the user has named the network themselves
            asked = await self.answer(asked, yes=True)
        return asked

    async def answer(self, asked: Approval, *, yes: bool) -> Approval | None:
        """Apply the changes, or discard them. Return the next question if something changed meanwhile."""
        answered = ApprovalAnswered(
            approval_id=asked.approval_id, yes=yes, digest=asked.digest if yes else None
        )
        if yes:
            self._session.record(answered)
        else:
            await self._dispatcher.refuse(answered)
        return await self._go_on()

    async def _go_on(self) -> Approval | None:
        await self._dispatcher.run_queue()
        state = self._session.state
        if state.approval is None and state.request is not None:
            ended = RequestFinished(request_id=state.request.request_id, outcome="done", exit_code=0)
            self._session.record(ended)
        return state.approval

    async def aclose(self) -> None:
        """End the command, and release the folder."""
        await self._closing.aclose()
