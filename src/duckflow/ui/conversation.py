"""The conversation: messages are worked on one after the other while the prompt stays open for more."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

from duckflow.domain import commands
from duckflow.domain.errors import UserError
from duckflow.domain.events import ApprovalRequested, Recorded, TaskReported
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import Exit, dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand, find_custom, read_command, read_prompt
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.jobs import Job, stopped
from duckflow.ui.key_listener import KeyListener
from duckflow.ui.output.escaping import visible
from duckflow.ui.questions import Questions

_LONG_S = 5.0
"""Work that lasted longer is worth a call when it is done."""

Notify = Callable[[str], None]
Answer = TypeVar("Answer")


class Conversation:
    """Takes messages, lets the engine work on them, and asks what is open, until the user leaves."""

    def __init__(
        self, context: CommandContext, keyboard: Keyboard, questions: Questions, way_out: Exit, notify: Notify
    ) -> None:
        self._context = context
        self._engine = context.engine
        self._keyboard = keyboard
        self._questions = questions
        self._exit = way_out
        self._notify = notify
        self._called = asyncio.Event()
        self._sent: list[commands.SayMessage | commands.UndoWork | commands.RewindWork] = []
        self._asked: asyncio.Future[Any] | None = None
        self._job = Job(self._show_work)
        keyboard.listener = KeyListener(context, keyboard, self._job)

    def __call__(self, what: Recorded | LiveUpdate) -> None:
        """See what happens; the background may want an answer, or that its report be looked at."""
        self._keyboard.refresh()
        if not isinstance(what, Recorded):
            return
        event = what.event
        asks = isinstance(event, ApprovalRequested) and not (
            self._job.busy and event.approval.task_id is None
        )
        if asks or isinstance(event, TaskReported):
            self._called.set()

    def receive(self, command: commands.ClientCommand) -> Callable[[], None] | str | None:
        """What another window on this session wants: what to do, why not, or None for later."""
        match command:
            case commands.CancelWork():
                return self._keyboard.listener.stop if self._job.busy else "clients.nothing_runs"
            case commands.SetMode():
                return lambda: self._engine.set_mode(command.mode)
            case commands.SetEffort():
                return lambda: self._engine.set_effort(command.effort)
            case commands.AnswerShown() | commands.ChooseShown():
                asked, objection = self._asked, commands.objection_to(command, self._engine.state)
                if objection is not None or asked is None or asked.done():
                    return objection
                answer = command.answer if isinstance(command, commands.AnswerShown) else command.way
                return lambda: asked.set_result(answer)
            case commands.SayMessage() | commands.UndoWork() | commands.RewindWork():
                busy = self._job.busy or self._asked or self._sent
                return None if busy else lambda: self._send(command)

    def _send(self, command: commands.SayMessage | commands.UndoWork | commands.RewindWork) -> None:
        self._sent.append(command)
        self._called.set()

    async def run(self) -> str | None:
        """Talk until the user leaves; the session to go on with, if there is one."""
        talking = asyncio.ensure_future(self._talk())
        left = asyncio.ensure_future(self._keyboard.left.wait())
        await asyncio.wait({talking, left, self._exit.taken}, return_when=asyncio.FIRST_COMPLETED)
        left.cancel()
        if talking.done():
            talking.result()
            return None
        talking.cancel()
        with suppress(asyncio.CancelledError):
            await talking
        return self._exit.taken.result() if self._exit.taken.done() else None

    async def _talk(self) -> None:
        await self._settle_questions()
        with suppress(EOFError):
            while True:
                await self._take(await self._next())
                await self._settle_background()

    async def _next(self) -> str | None:
        """The next message; None if the background called first."""
        message = asyncio.ensure_future(self._keyboard.inbox.get())
        called = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait({message, called}, return_when=asyncio.FIRST_COMPLETED)
            return message.result() if message.done() else None
        finally:
            message.cancel()
            called.cancel()

    async def _take(self, said: str | None) -> None:
        """Do what a line says: a command, a shell command, a message."""
        if not said:
            return
        self._context.screen.said(said)
        custom = find_custom(said, self._engine.extensions.commands)
        typed = read_command(said) if custom is None else None
        if (prompt := read_prompt(said)) is not None:
            await self._say_prompt(*prompt)
        elif typed is not None:
            await dispatch_in_turn(self._context, typed)
        elif custom is None and said.startswith("!"):
            await self._run_command(said[1:].strip())
        else:
            await self._say(custom or said)

    async def _say(self, said: str) -> None:
        await self._job.do(self._engine.say(said))
        await self._settle_questions()
        if self._job.lasted_s > _LONG_S:
            self._notify(text("notice.done"))

    async def _say_prompt(self, name: str, argument: str) -> None:
        """A prompt of an MCP server, shown as it is and then said."""
        try:
            said = await self._engine.prompt(name, argument)
        except UserError as error:
            self._context.writer.line(text("error.line", message=text(error.key, **error.values)), "red")
            return
        self._context.writer.line(visible(said), "dim")
        await self._say(said)

    async def _run_command(self, command: str) -> None:
        """A command of the user's own; what it printed is there for the model too."""
        ran = await self._job.do(self._engine.run_command(command)) if command else None
        if ran is False:
            self._context.writer.line(text("shell.not_there"), "yellow")

    async def _settle_background(self) -> None:
        """Answer what the background asked; and if the chat waits for its report, go on."""
        if not self._called.is_set():
            return
        self._called.clear()
        while self._sent:
            match self._sent.pop(0):
                case commands.SayMessage(text=said):
                    self._context.screen.said(said)
                    await self._say(said)
                case commands.UndoWork(wanted=wanted):
                    await dispatch_in_turn(self._context, TypedCommand("undo", wanted))
                case commands.RewindWork(before=before, part=part):
                    numbers = (number for number, seq, *_ in self._engine.messages() if seq == before)
                    wanted = f"{next(numbers, 0)} {part.removeprefix('both')}"
                    await dispatch_in_turn(self._context, TypedCommand("rewind", wanted))
        await self._settle_questions()
        request = self._engine.state.request
        if request is not None and request.outcome == "deferred" and not self._engine.state.background_runs:
            await self._job.do(self._engine.go_on())
            await self._settle_questions()

    async def _settle_questions(self) -> None:
        """Ask what is open until nothing is."""
        while True:
            state = self._engine.state
            if state.approval is not None:
                if not await self._settle_approval(state.approval):
                    return
            elif state.consultation is not None:
                self._notify(text("notice.question"))
                way = await self._first_answer(self._questions.consult(state.consultation))
                if way is None:
                    return
                await self._job.do(self._engine.choose(way))
            else:
                return

    async def _settle_approval(self, approval: Approval) -> bool:
        """Ask; False if the user had enough: then it is a no, and nothing goes on."""
        self._notify(text("notice.question"))
        proposed = await self._engine.proposal() if approval.editable else None
        answer = await self._first_answer(self._questions.approve(approval, proposed))
        if answer is None:
            await stopped(self._engine.answer(AnswerApproval(yes=False)))
            return False
        await self._job.do(self._engine.answer(answer))
        return True

    async def _first_answer(self, asking: Coroutine[None, None, Answer]) -> Answer:
        """The answer given here or in another window, whichever comes first; the question is gone then."""
        elsewhere: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._asked = elsewhere
        here = asyncio.ensure_future(asking)
        try:
            await asyncio.wait({here, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            if not elsewhere.done():
                return here.result()
            self._context.writer.line(text("clients.answered"), "dim")
            return elsewhere.result()
        finally:
            self._asked = None
            here.cancel()
            with suppress(asyncio.CancelledError):
                await here

    def _show_work(self, busy: bool) -> None:  # noqa: FBT001 - it is called with what is
        self._context.screen.activity.busy = busy
        self._keyboard.refresh()
