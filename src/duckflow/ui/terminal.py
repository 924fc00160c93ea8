"""The conversation: a prompt, questions in the flow, Ctrl-C that stops the work and not the program."""

import asyncio
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from typing import Protocol

from duckflow.domain.commands import ChooseWay
from duckflow.domain.events import ApprovalRequested, Glimpse, Recorded, TaskReported
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.ui.answers import read_answer, read_choice
from duckflow.ui.keyboard import Keyboard, LineCleared
from duckflow.ui.lines import approval_text, consultation_text, tasks_text


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


class Conversation:
    """Asks for a message, lets the engine work on it, and asks again, until the user leaves."""

    def __init__(self, engine: Engine, keyboard: Keyboard) -> None:
        self._engine = engine
        self._keyboard = keyboard
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
        sys.stdout.write(text("chat.hint") + "\n")
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
        shown = {"/help": text("chat.help"), "/tasks": tasks_text(self._engine.state)}
        sys.stdout.write(shown.get(said, text("chat.unknown_command", command=said)) + "\n")
        return ""

    async def _work(self, work: Coroutine[None, None, RequestOutcome]) -> None:
        await interruptible(work)
        await self._settle_questions()

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
                sys.stdout.write(approval_text(state.approval) + "\n")
                answer = read_answer(await self._plain_answer(text("approval.question")))
                await interruptible(self._engine.answer(yes=answer.yes, reason=answer.reason))
            elif state.consultation is not None:
                sys.stdout.write(consultation_text(state.consultation) + "\n")
                said = await self._plain_answer(text("consultation.question"))
                if not said.strip():
                    return
                await interruptible(self._engine.choose(read_choice(said, state.consultation)))
            else:
                return

    async def _plain_answer(self, prompt: str) -> str:
        try:
            return await self._keyboard.ask_plainly(prompt)
        except (EOFError, LineCleared):
            return ""


async def interruptible(work: Coroutine[None, None, RequestOutcome]) -> RequestOutcome | None:
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
