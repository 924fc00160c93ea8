"""The conversation: messages are sent one after the other while the prompt stays open for more."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from duckflow.domain import commands
from duckflow.domain.commands import SessionCommand, hash_of
from duckflow.domain.errors import UserError
from duckflow.domain.events import (
    ApprovalRequested,
    ConsultationRequested,
    StoredEvent,
    TaskReported,
    UserMessage,
)
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import Consultation
from duckflow.domain.session_client import SessionUpdate, StatusChanged
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import Exit, dispatch_in_turn
from duckflow.ui.commands.table import find_custom, read_command, read_prompt
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.key_listener import KeyListener
from duckflow.ui.output.escaping import visible
from duckflow.ui.questions import Questions
from duckflow.ui.screen import FOREIGN

_LONG_S = 5.0
"""Work that lasted longer is worth a call when it is done."""
_TICK_S = 0.25

Notify = Callable[[str], None]


class Conversation:
    """Sends what is typed, shows what happens, and asks what is open, until the user leaves."""

    def __init__(
        self, context: CommandContext, keyboard: Keyboard, questions: Questions, way_out: Exit, notify: Notify
    ) -> None:
        self._context = context
        self._client = context.client
        self._keyboard = keyboard
        self._questions = questions
        self._exit = way_out
        self._notify = notify
        self._seen = asyncio.Event()
        self._called = asyncio.Event()
        self._busy = False
        self._began = 0.0
        self._lasted_s = 0.0
        self._own: str | None = None
        """The line of this window that is being carried out; empty for an answer."""
        self._left_open = ""
        keyboard.listener = KeyListener(context, keyboard)

    async def run(self, updates: AsyncIterator[SessionUpdate]) -> str | None:
        """Talk until the user leaves; the session to go on with, if there is one."""
        parts = (self._talk(), self._keyboard.left.wait(), self._follow(updates), self._tick())
        tasks: list[asyncio.Future[Any]] = [asyncio.ensure_future(one) for one in parts]
        await asyncio.wait({*tasks, self._exit.taken}, return_when=asyncio.FIRST_COMPLETED)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for task in tasks:
            if not task.cancelled():
                task.result()
        return self._exit.taken.result() if self._exit.taken.done() else None

    async def _follow(self, updates: AsyncIterator[SessionUpdate]) -> None:
        async for update in updates:
            self._show(update)
            self._seen.set()
            self._keyboard.refresh()
        await asyncio.Event().wait()

    def _show(self, update: SessionUpdate) -> None:
        """Show an update. A question that is open, or a report of the background, calls for a look."""
        screen = self._context.screen
        match update:
            case StoredEvent(event=UserMessage(text=said)) if self._own and read_prompt(self._own):
                self._context.writer.line(visible(said), "dim")
            case _:
                screen.also = FOREIGN if self._own is None else ()
                screen(update)
        if isinstance(update, StatusChanged):
            if update.busy != self._busy:
                self._began, self._lasted_s = time.monotonic(), time.monotonic() - self._began
            self._busy = update.busy
            self._called.set()
        elif isinstance(update, StoredEvent) and isinstance(
            update.event, ApprovalRequested | ConsultationRequested | TaskReported
        ):
            self._left_open = ""
            self._called.set()

    async def _tick(self) -> None:
        """Draw a sign of life now and then."""
        while True:
            await asyncio.sleep(_TICK_S)
            if self._busy:
                self._keyboard.refresh()

    async def _until(self, met: Callable[[], bool]) -> None:
        """Come back when it is so, as far as updates have been shown."""
        while not met():
            self._seen.clear()
            await self._seen.wait()

    async def _rest(self) -> None:
        await self._until(lambda: not self._busy and not self._client.busy)

    async def _talk(self) -> None:
        await self._settle_questions()
        with suppress(EOFError):
            while True:
                await self._take(await self._next())
                await self._settle_questions()

    async def _next(self) -> str | None:
        """The next line; None if something else calls for a look first."""
        line = asyncio.ensure_future(self._keyboard.inbox.get())
        called = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait({line, called}, return_when=asyncio.FIRST_COMPLETED)
            self._called.clear()
            return line.result() if line.done() else None
        finally:
            line.cancel()
            called.cancel()

    async def _take(self, line: str | None) -> None:
        """Do what a line says: a command, a shell command, a message."""
        if not line:
            return
        await self._rest()
        self._context.screen.said(line)
        self._own = line
        try:
            await self._do(line)
            await self._rest()
        finally:
            self._own = None
        await self._settle_questions()
        if self._lasted_s > _LONG_S:
            self._notify(text("notice.done"))

    async def _do(self, line: str) -> None:
        custom = find_custom(line, self._client.extensions.commands)
        typed = read_command(line) if custom is None else None
        if typed is not None:
            await dispatch_in_turn(self._context, typed)
        elif custom is None and line.startswith("!"):
            if command := line[1:].strip():
                await self._carry_out(commands.RunShellCommand(command=command))
        else:
            await self._carry_out(commands.SayMessage(text=line))

    async def _carry_out(self, command: SessionCommand) -> None:
        """Send a command, and tell what is wrong with it."""
        try:
            result = await self._client.send(command)
        except UserError as error:
            self._context.writer.line(text("error.line", message=text(error.key, **error.values)), "red")
        else:
            if result.objection:
                self._context.writer.line(text(result.objection), "yellow")

    async def _settle_questions(self) -> None:
        """Ask what is open until nothing is, or the user leaves it open."""
        while True:
            await self._rest()
            self._own = None
            asked = self._open()
            if asked is None or hash_of(asked) == self._left_open:
                return
            self._notify(text("notice.question"))
            answer = await self._answered(asked)
            if answer is not None:
                self._own = ""
                await self._carry_out(answer)
            elif self._open() == asked:
                self._left_open = hash_of(asked)

    def _open(self) -> Approval | Consultation | None:
        return self._client.state.question

    async def _answered(self, asked: Approval | Consultation) -> SessionCommand | None:
        """The answer given here; None if the user has had enough, or another window was faster."""
        self._own = ""
        here = asyncio.ensure_future(self._ask(asked))
        gone = asyncio.ensure_future(self._until(lambda: self._open() != asked))
        try:
            await asyncio.wait({here, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not gone.done():
                return here.result()
            self._context.writer.line(text("clients.answered"), "dim")
            return None
        finally:
            self._own = None
            here.cancel()
            gone.cancel()
            await asyncio.gather(here, gone, return_exceptions=True)

    async def _ask(self, asked: Approval | Consultation) -> SessionCommand | None:
        shown = hash_of(asked)
        if isinstance(asked, Consultation):
            way = await self._questions.consult(asked)
            return None if way is None else commands.ChooseShown(question_hash=shown, way=way)
        proposed = await self._client.proposal() if asked.editable else None
        answer: AnswerApproval | None = await self._questions.approve(asked, proposed)
        if answer is None:
            return commands.DeclineAndStop(question_hash=shown)
        return commands.AnswerShown(question_hash=shown, answer=answer)
