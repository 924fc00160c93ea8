"""A second window on a session that is open elsewhere: it shows events and asks open questions (M7)."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from duckflow.domain import commands
from duckflow.domain.commands import SessionCommand
from duckflow.domain.errors import UserError
from duckflow.domain.modes import MODES
from duckflow.domain.questions.approval import Approval
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.session_client import SessionClient
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand, find_command, read_command
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import edit_on_line
from duckflow.ui.input.listener import Listener
from duckflow.ui.questions import Questions
from duckflow.ui.screen import FOREIGN, Screen
from duckflow.ui.views.live.activity import prompt_view

_HERE = ("status", "goal", "plan", "tasks", "cost", "expand", "mode", "effort", "undo", "rewind", "quit")
"""Commands that make sense in a second window."""
_TICK_S = 0.25


class SecondWindow(Listener):
    """Listens to the keyboard and shows what happens; a question is asked here too, until it is answered."""

    def __init__(self, client: SessionClient, frontend: Frontend) -> None:
        super().__init__(frontend.keyboard.left)
        self._client = client
        self._frontend = frontend
        self._writer, self._keyboard = frontend.writer, frontend.keyboard
        self._screen = Screen(frontend.writer, FOREIGN)
        self._context = CommandContext(client, frontend.writer, self._screen, self._leave_for)
        editing = edit_on_line(self._keyboard, "")
        self._questions = Questions(self._context, self._keyboard, editing, self._dispatch)
        self._asked: Approval | Consultation | None = None
        self._asking: asyncio.Task[None] | None = None
        self._behind: set[asyncio.Task[None]] = set()
        self._keyboard.listener = self

    async def run(self) -> None:
        """Until the user leaves, or no process has the session open."""
        draw = prompt_view(self._client, self._screen.activity, self._keyboard)
        self._frontend.attach(draw, self._client)
        parts = (self._follow(), self._read(), self._keyboard.left.wait(), self._tick())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(one) for one in parts]
        try:
            ended, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for one in ended:
                one.result()
        finally:
            tasks += [*self._behind, *([self._asking] if self._asking else [])]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self) -> None:
        async for update in self._client.updates():
            self._ask()
            self._screen(update)
            self._keyboard.refresh()
        self._writer.line(text("attach.left", session=self._client.state.session_id), "yellow")

    async def _tick(self) -> None:
        """Draw a sign of life now and then."""
        while True:
            await asyncio.sleep(_TICK_S)
            if self._client.busy:
                self._keyboard.refresh()

    async def _read(self) -> None:
        """Send what is typed. Without a terminal the end of input is not the end: there is more to see."""
        with suppress(EOFError):
            while True:
                said = await self._keyboard.inbox.get()
                typed = read_command(said)
                if typed is not None:
                    self._keep(self._dispatch(self._context, typed))
                elif said.strip():
                    self._send(commands.SayMessage(text=said))
        await asyncio.Event().wait()

    def _ask(self) -> None:
        """Ask what is open, once; a question that is gone was answered elsewhere."""
        asked = self._client.state.question
        if asked == self._asked:
            return
        if self._asking is not None and not self._asking.done():
            self._asking.cancel()
            self._writer.line(text("clients.answered"), "dim")
        self._asked = asked
        self._asking = asyncio.ensure_future(self._settle(asked)) if asked else None

    async def _settle(self, asked: Approval | Consultation) -> None:
        shown = commands.hash_of(asked)
        if isinstance(asked, Approval):
            answer = await self._questions.approve(asked)
            command = commands.AnswerShown(question_hash=shown, answer=answer) if answer else None
        else:
            way = await self._questions.consult(asked)
            command = commands.ChooseShown(question_hash=shown, way=way) if way else None
        if command is None:
            self._writer.line(text("attach.open"), "dim")
        else:
            self._send(command)

    async def _dispatch(self, context: CommandContext, typed: TypedCommand) -> None:
        """Run a command that makes sense in a second window."""
        command = find_command(typed.name)
        name = command.name if command else ""
        if name in _HERE:
            await dispatch_in_turn(context, typed)
        elif name == "cancel":
            self.stop()
        else:
            self._writer.line(text("attach.not_here", session=self._client.state.session_id), "yellow")

    def _send(self, command: SessionCommand) -> None:
        self._keep(self._sent(command))

    async def _sent(self, command: SessionCommand) -> None:
        """Send a command, and tell what is wrong with it once that is known."""
        try:
            objection = (await self._client.send(command)).objection
        except UserError as error:
            self._writer.line(text("error.line", message=text(error.key, **error.values)), "red")
        else:
            self._writer.line(text(objection), "yellow") if objection else None

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    def _leave_for(self, _session: str | None) -> None:
        self.leave()

    def stop(self) -> None:
        """Esc: stop the work, wherever it is done."""
        self._send(commands.CancelWork())

    def interrupt(self) -> None:
        """Ctrl-C: clear the line, or leave; the work goes on."""
        if not self._keyboard.swap_line(""):
            self.leave()

    def expand(self) -> None:
        """Ctrl-O: show the last result whole."""
        self._screen.expand()

    def change_mode(self) -> None:
        """Shift-Tab: the next mode."""
        place = MODES.index(self._client.state.mode)
        self._send(commands.SetMode(mode=MODES[(place + 1) % len(MODES)]))
