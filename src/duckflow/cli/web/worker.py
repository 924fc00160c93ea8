"""A session that this process has open because nobody else does: it works on what comes into its inbox."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Self

from duckflow.app.opening import open_app
from duckflow.cli.chat.engine import ChatEngine
from duckflow.config.loading import load_as_trusted
from duckflow.domain import commands
from duckflow.domain.errors import UserError
from duckflow.domain.events import Recorded, TaskReported, report_of
from duckflow.domain.files.changes import UndoReport
from duckflow.domain.live_updates import LiveUpdate
from duckflow.llm.local.relay import Relay
from duckflow.ui.jobs import Job

IDLE_S = 60.0
"""With nothing to do, the folder is free for others again after so long."""
ASKED_S = 600.0
"""The same while a question is open: it stays, and is taken up again with its answer."""

Work = Callable[[], Coroutine[Any, Any, object]]


class SessionWorker:
    """One thing after the other; a message waits until nothing is being done and nothing is asked."""

    def __init__(self) -> None:
        self._job = Job(lambda _busy: None)
        self._todo: asyncio.Queue[Work | None] = asyncio.Queue()

    async def open(self, folder: Path, session_id: str | None, flags: dict[str, object]) -> Self:
        """Open a session, new or from earlier; UserError if it can't be, for one because somebody has it.

        A project's own settings act only if the user trusts them already: nobody is asked about it here.
        """
        loaded = await asyncio.to_thread(load_as_trusted, folder, flags=flags)
        keeps_mode = flags.get("mode") is None
        self._app = await open_app(loaded, folder, session_id, Relay(), self, keeps_mode=keeps_mode)
        self._engine = ChatEngine(self._app, loaded)
        return self

    @property
    def session_id(self) -> str:
        """Which one it is."""
        return self._app.session.state.session_id

    @property
    def folder(self) -> Path:
        """Where it works."""
        return self._app.workspace.root

    def leave(self) -> bool:
        """Let somebody else have the folder, if nothing is being done."""
        if self._job.busy or not self._todo.empty() or self._engine.state.background_runs:
            return False
        self._todo.put_nowait(None)
        return True

    def __call__(self, what: Recorded | LiveUpdate) -> None:
        """The chat may wait for what the background reports."""
        if isinstance(what, Recorded) and isinstance(what.event, TaskReported):
            self._todo.put_nowait(self._go_on)

    def receive(self, command: commands.ClientCommand) -> Callable[[], object] | str | None:
        """What to do about a command, why not, or None for later."""
        state, busy = self._engine.state, self._job.busy or not self._todo.empty()
        match command:
            case commands.CancelWork():
                return self._job.stop if self._job.busy else "clients.nothing_runs"
            case commands.SetMode():
                return lambda: self._engine.set_mode(command.mode)
            case commands.SetEffort():
                return lambda: self._engine.set_effort(command.effort)
            case commands.AnswerShown() | commands.ChooseShown():
                objection = commands.objection_to(command, state)
                if objection is not None or busy:
                    return objection
                return self._later(lambda: self._answer(command))
            case commands.SayMessage():
                asked = state.approval is not None or state.consultation is not None
                return None if busy or asked else self._later(lambda: self._engine.say(command.text))
            case commands.UndoWork():
                return None if busy else self._later(lambda: self._back(self._engine.undo(command.wanted)))
            case commands.RewindWork():
                return None if busy else self._later(lambda: self._back(self._rewind(command)))

    async def run(self) -> None:
        """Work until there has been nothing to do for a while; then the session is free again."""
        serving = asyncio.ensure_future(self._app.clients.serve(self.receive))
        try:
            while (work := await self._next()) is not None:
                await self._job.do(work())
        finally:
            serving.cancel()
            await self._engine.aclose()
            await self._app.aclose()

    async def _next(self) -> Work | None:
        while True:
            state = self._engine.state
            asked = state.approval is not None or state.consultation is not None
            try:
                return await asyncio.wait_for(self._todo.get(), ASKED_S if asked else IDLE_S)
            except TimeoutError:
                if not self._engine.state.background_runs:
                    return None

    def _later(self, work: Work) -> Callable[[], None]:
        return lambda: self._todo.put_nowait(work)

    async def _answer(self, command: commands.AnswerShown | commands.ChooseShown) -> None:
        """Asked again whether it counts: the question may have changed while this waited."""
        if commands.objection_to(command, self._engine.state) is not None:
            return
        if isinstance(command, commands.AnswerShown):
            await self._engine.answer(command.answer)
        else:
            await self._engine.choose(command.way)

    async def _rewind(self, command: commands.RewindWork) -> UndoReport:
        numbers = (one.number for one in self._engine.messages() if one.seq == command.before)
        files, conversation = command.part != "conversation", command.part != "files"
        return await self._engine.rewind(next(numbers, 0), conversation=conversation, files=files)

    async def _back(self, going: Coroutine[Any, Any, UndoReport]) -> None:
        """Take something back; what is in the way is told to all who look."""
        try:
            await going
        except UserError as error:
            self._app.session.record(report_of(error))

    async def _go_on(self) -> None:
        request = self._engine.state.request
        if request is not None and request.outcome == "deferred" and not self._engine.state.background_runs:
            await self._engine.go_on()
