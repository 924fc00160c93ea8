"""The conversation: a prompt, replies as they are written, Ctrl-C that stops the work and not the program."""

import asyncio
import signal
import sys
from collections.abc import Awaitable, Callable, Coroutine
from typing import Protocol

from duckflow.domain.events import (
    ActionFinished,
    ErrorReported,
    Glimpse,
    Recorded,
    Reply,
    ReplyPiece,
    ReplyVoid,
    RequestFinished,
    SessionStarted,
    Waiting,
)
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.ui.answers import read_answer
from duckflow.ui.lines import action_line, approval_text, error_line, outcome_line, start_line


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


class Screen:
    """Prints events as they come; pieces of a reply at once, and the rest in lines."""

    def __init__(self) -> None:
        self._shown = ""

    def __call__(self, what: Recorded | Glimpse) -> None:
        """Show one thing."""
        match what:
            case ReplyPiece():
                self._write(what.text if self._shown else f"\n{what.text}")
                self._shown += what.text
            case ReplyVoid():
                self._end_reply()
            case Waiting():
                self._line(text("llm.waiting", reason=text(what.reason), seconds=round(what.wait_s)))
            case Recorded():
                self._event(what)

    def _event(self, recorded: Recorded) -> None:
        match recorded.event:
            case SessionStarted() as started:
                self._line(start_line(started))
            case Reply() as reply:
                self._reply(reply.text)
            case ActionFinished() as finished:
                self._line(action_line(finished))
            case ErrorReported() as error:
                self._line(error_line(error))
            case RequestFinished() as ended:
                self._line(outcome_line(ended, ""))
            case _:
                pass

    def _reply(self, reply: str) -> None:
        """The rest of a reply that was partly shown already, or all of it."""
        if reply.startswith(self._shown):
            self._write(reply[len(self._shown) :] if self._shown else f"\n{reply}")
        else:
            self._write(f"\n{reply}")
        self._shown = ""
        self._write("\n")

    def _end_reply(self) -> None:
        if self._shown:
            self._write("\n")
        self._shown = ""

    def _line(self, line: str | None) -> None:
        if line:
            self._end_reply()
            self._write(f"{line}\n")

    def _write(self, characters: str) -> None:
        sys.stdout.write(characters)
        sys.stdout.flush()


Ask = Callable[[str], Awaitable[str]]
"""Reads one message after a prompt. EOFError is a wish to leave, KeyboardInterrupt an empty message."""


class Conversation:
    """Asks for a message, lets the engine work on it, and asks again, until the user leaves."""

    def __init__(self, engine: Engine, ask: Ask, ask_plainly: Ask) -> None:
        self._engine = engine
        self._ask = ask
        self._ask_plainly = ask_plainly

    async def run(self) -> None:
        """Talk until the user leaves."""
        sys.stdout.write(text("chat.hint") + "\n")
        if self._engine.state.approval is not None:
            await self._settle_approvals("awaiting_approval")
        while (said := await self._message()) is not None:
            if said:
                await self._work(self._engine.say(said))

    async def _message(self) -> str | None:
        """What the user says; empty where a command was all, None to leave."""
        try:
            said = (await self._ask(text("chat.prompt"))).strip()
        except KeyboardInterrupt:
            return ""
        except EOFError:
            return None
        if said in ("/quit", "/exit"):
            return None
        if said == "/help":
            sys.stdout.write(text("chat.help") + "\n")
            return ""
        if said.startswith("/") and " " not in said and "/" not in said[1:]:
            sys.stdout.write(text("chat.unknown_command", command=said) + "\n")
            return ""
        return said

    async def _work(self, work: Coroutine[None, None, RequestOutcome]) -> None:
        await self._settle_approvals(await interruptible(work))

    async def _settle_approvals(self, outcome: RequestOutcome | None) -> None:
        while outcome == "awaiting_approval" and (approval := self._engine.state.approval) is not None:
            sys.stdout.write(approval_text(approval) + "\n")
            try:
                answer = read_answer(await self._ask_plainly(text("approval.question")))
            except (EOFError, KeyboardInterrupt):
                answer = read_answer("")
            outcome = await interruptible(self._engine.answer(yes=answer.yes, reason=answer.reason))


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
