"""The conversation: a prompt, questions in the flow, Ctrl-C that stops the work and not the program."""

import asyncio
import signal
from collections.abc import Coroutine
from contextlib import suppress
from typing import Protocol

from duckflow.domain.commands import AnswerApproval, ChooseWay
from duckflow.domain.events import ApprovalRequested, Glimpse, Recorded, TaskReported
from duckflow.domain.state import AgentState, Approval, RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.ui.answers import read_answer, read_choice
from duckflow.ui.colours import paint_difference
from duckflow.ui.keyboard import Keyboard, LineCleared
from duckflow.ui.lines import approval_text, consultation_text, tasks_text
from duckflow.ui.paper import Paper

Work = Coroutine[None, None, RequestOutcome]


class Engine(Protocol):
    """What the conversation needs of the engine."""

    @property
    def state(self) -> AgentState:
        """The newest state."""
        ...

    async def say(self, said: str) -> RequestOutcome:
        """Work on a message."""
        ...

    async def answer(self, *, yes: bool, reason: str = "") -> RequestOutcome:
        """Go on after an approval was answered."""
        ...

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        """Go on after a consultation was answered."""
        ...

    async def go_on(self) -> RequestOutcome:
        """Go on with what waits for a report of the background."""
        ...

    def cancel_tasks(self) -> bool:
        """Stop the background; False where nothing runs there."""
        ...


class Conversation:
    """Asks for a message, lets the engine work on it, and asks again, until the user leaves."""

    def __init__(self, engine: Engine, keyboard: Keyboard, paper: Paper) -> None:
        self._engine = engine
        self._keyboard = keyboard
        self._paper = paper
        self._called = asyncio.Event()

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Hear what the background wants: an answer, or that its report be looked at."""
        if not isinstance(what, Recorded):
            return
        event = what.event
        asks = isinstance(event, ApprovalRequested) and event.approval.task_id is not None
        if asks or isinstance(event, TaskReported):
            self._called.set()

    async def run(self) -> None:
        """Talk until the user leaves."""
        self._paper.line(text("chat.hint"), "dim")
        await self._settle_questions()
        typed = ""
        while True:
            said, typed = await self._message(typed)
            if said is None:
                return
            if said:
                await self._work(self._engine.say(said))
            await self._settle_background()

    async def _message(self, typed: str) -> tuple[str | None, str]:
        """What the user says, None to leave; and what was being typed when the background called."""
        try:
            said = (await self._ask_or_hear(typed)).strip()
        except LineCleared:
            return "", ""
        except EOFError:
            return None, ""
        if self._called.is_set():
            return "", said
        return (None if said in ("/quit", "/exit") else self._command(said)), ""

    async def _ask_or_hear(self, typed: str) -> str:
        asking = asyncio.ensure_future(self._keyboard.ask(text("chat.prompt"), typed))
        hearing = asyncio.ensure_future(self._called.wait())
        try:
            await asyncio.wait({asking, hearing}, return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                return asking.result()
            typed = self._keyboard.take_back()
            return typed or await asking
        finally:
            hearing.cancel()
            with suppress(EOFError, LineCleared):
                await asking

    def _command(self, said: str) -> str:
        """The message to work on; empty where a command was all."""
        if not said.startswith("/") or " " in said or "/" in said[1:]:
            return said
        match said:
            case "/help":
                self._paper.line(text("chat.help"))
            case "/tasks":
                self._paper.line(tasks_text(self._engine.state))
            case "/cancel":
                self._paper.line("" if self._engine.cancel_tasks() else text("tasks.none"))
            case _:
                self._paper.line(text("chat.unknown_command", command=said))
        return ""

    async def _work(self, work: Work) -> None:
        await self._watched(work)
        await self._settle_questions()

    async def _watched(self, work: Work) -> None:
        with self._keyboard.silent():
            async with self._paper.waiting():
                await interruptible(work)

    async def _settle_background(self) -> None:
        """Answer what the background asked; and where the chat waits for its report, go on."""
        if not self._called.is_set():
            return
        self._called.clear()
        await self._settle_questions()
        request = self._engine.state.request
        if request is not None and request.outcome == "deferred" and not self._engine.state.background_runs:
            await self._work(self._engine.go_on())

    async def _settle_questions(self) -> None:
        """Ask what is open until nothing is."""
        while True:
            state = self._engine.state
            if state.approval is not None:
                if not await self._settle_approval(state.approval):
                    return
            elif state.consultation is not None:
                self._paper.line(consultation_text(state.consultation))
                said = await self._plain_answer(text("consultation.question"))
                if not (said or "").strip():
                    return
                await self._watched(self._engine.choose(read_choice(said or "", state.consultation)))
            else:
                return

    async def _settle_approval(self, approval: Approval) -> bool:
        """Ask; False where the user had enough: then it is a no, and nothing goes on."""
        self._paper.raw(approval_text(approval, paint_difference if self._paper.coloured else str))
        said = await self._plain_answer(text("approval.question"))
        answer = self._answer(read_answer(said or ""))
        if said is None:
            await stopped(answer)
            return False
        await self._watched(answer)
        return True

    def _answer(self, answer: AnswerApproval) -> Work:
        return self._engine.answer(yes=answer.yes, reason=answer.reason)

    async def _plain_answer(self, prompt: str) -> str | None:
        """What the user answers; None for Ctrl-C and the end of input."""
        try:
            return await self._keyboard.ask_plainly(prompt)
        except (EOFError, LineCleared):
            return None


async def stopped(work: Work) -> None:
    """Let the work write down what it was told, and stop it at the first thing it would wait for."""
    task = asyncio.ensure_future(work)
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()


async def interruptible(work: Work) -> RequestOutcome | None:
    """Run the work; Ctrl-C stops it and nothing else. None where it was stopped."""
    task = asyncio.ensure_future(work)
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGINT, task.cancel)
    try:
        return await task
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if current is not None and current.cancelling():
            raise
        return None
    finally:
        loop.remove_signal_handler(signal.SIGINT)
