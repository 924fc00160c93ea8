"""The session's actor: owns the parts of an open session and carries out commands one after the other.

`SessionHost` decides when a command begins, and `SessionWork` carries it out. User interfaces in this process
are clients (`local`). Other processes are guests, which leave commands in the database (`remote`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from duckflow.app.app import App, open_app
from duckflow.app.opening import Opening
from duckflow.domain import commands
from duckflow.domain.commands import SessionCommand, SessionResult, last_change, typed_line
from duckflow.domain.errors import UserError
from duckflow.domain.events import (
    EffortChanged,
    ErrorReported,
    ModeChanged,
    PermissionChanged,
    StoredEvent,
    TaskReported,
)
from duckflow.domain.frozen import replace
from duckflow.domain.habits import habit_of
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.session_client import SessionUpdate, StatusChanged
from duckflow.domain.state import AgentState
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.answers import answers_nothing, is_end, is_stop
from duckflow.loops.undo.rewind import changed_since, fork
from duckflow.session.channel import Receipt, UpdateQueue
from duckflow.session.work import SessionWork
from duckflow.store.command_inbox import CommandInbox, WaitingCommand
from duckflow.store.memory import Memories
from duckflow.ui.commands.table import find_custom, read_prompt

if TYPE_CHECKING:
    from duckflow.loops.thinking.titles import TitleWriter

IDLE_S = 60.0
"""Idle seconds after which a session that only guests use is closed."""
ASKED_S = 600.0
"""The same limit while a question to the user is open."""
_LOOK_S = 0.15
"""Seconds between two checks for commands of other processes (M7); each reads one number."""
_AT_ONCE = (
    commands.CancelWork,
    commands.SetMode,
    commands.SetEffort,
    commands.ChangePermission,
    commands.RateRequest,
    commands.ForkSession,
    commands.ForgetMemories,
)
"""Commands that are carried out at once, even while another command is at work."""
_REQUEST_WORK = (
    commands.SayMessage,
    commands.AnswerShown,
    commands.ChooseShown,
    commands.AnswerInWords,
    commands.ContinueWork,
)
"""Commands that let the model work, so that a message can steer them (C6)."""
UpdateSubscriber = Callable[[SessionUpdate], None]
_log = logging.getLogger(__name__)


class SessionHost:
    """One open session. If a program drives it (`driven`), requests of guests wait for the next owner."""

    def __init__(
        self, app: App, subscribers: Sequence[UpdateSubscriber], title: "TitleWriter | None", *, driven: bool
    ) -> None:
        self.app = app
        self._subscribers = [*subscribers]
        self._driven = driven
        self._carrying_out = SessionWork(app, driven=driven)
        self.outcome: RequestOutcome | None = None
        """Outcome of the last work."""
        self._title = title
        self._waiting: list[Receipt] = []
        self._work: asyncio.Task[SessionResult] | None = None
        self._steerable = False
        """True while the model works on a request."""
        self._behind: set[asyncio.Task[None]] = set()
        self._reported = False
        self._stirred = asyncio.Event()
        self.leaving = False
        """True once the host accepts no more commands."""
        app.session.subscribe(self._note)
        self._keep(self._serve_inbox())

    @classmethod
    async def open(cls, opening: Opening, *subscribers: UpdateSubscriber, driven: bool = False) -> Self:
        """Open a session; UserError if its folder is in use or no model answers."""
        app = await open_app(opening, *subscribers)
        title = None
        if opening.loaded.settings.ui.titles and not driven:
            from duckflow.loops.thinking.titles import TitleWriter  # noqa: PLC0415 - not for programs

            title = TitleWriter(app.session, app.advisor)
        return cls(app, subscribers, title, driven=driven)

    @property
    def state(self) -> AgentState:
        """Newest state."""
        return self.app.session.state

    @property
    def session_id(self) -> str:
        """Id of the session."""
        return self.state.session_id

    @property
    def folder(self) -> Path:
        """Folder of the session."""
        return self.app.workspace.root

    @property
    def busy(self) -> bool:
        """True while a command is being carried out."""
        return self._work is not None

    def subscribe(self, subscriber: UpdateSubscriber) -> None:
        """Send every update from now on to the subscriber."""
        self._subscribers.append(subscriber)
        self.app.session.subscribe(subscriber)

    def show_status(self) -> None:
        """Notify subscribers that `busy` or a value of the status bar has changed."""
        for subscriber in self._subscribers:
            subscriber(StatusChanged(busy=self.busy))

    def send(self, command: SessionCommand, *, guest: bool = False) -> Receipt:
        """Carry out a command at once or in its turn. Errors of a guest's command are recorded."""
        command = self._dated(command)
        receipt = Receipt(command, guest=guest)
        if (objection := self.standing(command, guest=guest)) or self.leaving:
            receipt.end(SessionResult(objection=objection or "clients.nothing_runs"))
        elif self._acts_at_once(command):
            receipt.end(self._act(command))
        else:
            self._waiting.append(receipt)
            if isinstance(command, commands.SayMessage) and self._works() and is_end(command.text):
                self._cancel()
            self._advance()
        return receipt

    def _dated(self, command: SessionCommand) -> SessionCommand:
        """Let an undo mean the changes that there are now, even if it must wait (C6)."""
        if isinstance(command, commands.UndoWork) and command.upto is None:
            return replace(command, upto=last_change(self.state))
        return command

    def waiting_lines(self, *, guests: bool = False) -> Sequence[str]:
        """Return the messages and undos that the work has not taken yet, as typed, oldest first."""
        own = (one.command for one in self._waiting if guests or not one.guest)
        waiting = (*self.app.session.unheard, *own)
        return [line for one in waiting if (line := typed_line(one))]

    def take_back(self) -> Sequence[str]:
        """Remove and return the messages and undos of this process that the work has not taken yet."""
        lines, unheard = self.waiting_lines(), self.app.session.unheard
        unheard.clear()
        for receipt in [*self._waiting]:
            if not receipt.guest and typed_line(receipt.command):
                self._waiting.remove(receipt)
                receipt.end(SessionResult())
        return lines

    def standing(self, command: SessionCommand, *, guest: bool) -> str | None:
        """Return the objection to a command, empty if it can begin now, or None while it must wait."""
        state = self.state
        match command:
            case _ if self.leaving:
                return None
            case commands.SetMode(mode=mode) if self.app.reads_only and mode != "plan":
                return "clients.reads_only"
            case commands.CancelWork():
                return "" if self.busy or self._runs_behind() else "clients.nothing_runs"
            case commands.SayMessage(text=said) if not self._driven and answers_nothing(said, state):
                return "clients.nothing_asked"
            case commands.SayMessage() if self._acts_at_once(command):
                return ""
            case commands.SayMessage() | commands.UndoWork() | commands.RewindWork() if (
                guest and self._driven
            ):
                return None
            case commands.SayMessage(text=said, pictures=()) if guest and not said.strip():
                return "clients.not_offered"
            case commands.SayMessage(text=said) if (
                guest and state.question and state.approval is None and not is_stop(said)
            ):
                return None
            case _ if objection := commands.objection_to(command, state, guest=guest):
                return objection
            case _:
                return None if self.busy and not self._acts_at_once(command) else ""

    def _acts_at_once(self, command: SessionCommand) -> bool:
        if isinstance(command, commands.StopBackground):
            return bool(self.state.background_runs) or not self.state.background_commands
        if isinstance(command, commands.SayMessage):
            return self._stops(command) or self._steers(command)
        if isinstance(command, commands.RunShellCommand):
            return self._joins()
        return isinstance(command, _AT_ONCE)

    def _runs_behind(self) -> bool:
        return bool(self.state.background_runs or self.state.background_commands)

    def _stops(self, message: commands.SayMessage) -> bool:
        """Return whether a message only asks to stop what runs."""
        return is_stop(message.text) and (self.busy or (self._runs_behind() and not self.state.question))

    def _works(self) -> bool:
        """Return whether the model works, so that a message or a command can join in."""
        return self._steerable and self._work is not None and not self._work.done()

    def _joins(self) -> bool:
        """Return whether a new line joins the current work. One typed after an undo waits behind it."""
        return self._works() and not any(isinstance(one.command, commands.UndoWork) for one in self._waiting)

    def _steers(self, message: commands.SayMessage) -> bool:
        """Return whether a message is for the current work. Commands and words for a shell are not."""
        said = message.text
        if not self._joins() or message.later or habit_of(said) or is_end(said):
            return False
        return find_custom(said, self.app.extensions.commands) is None and read_prompt(said) is None

    async def until_idle(self) -> None:
        """Wait until the session was idle long enough to be closed, or `leave` was called."""
        while not self.leaving:
            self._stirred.clear()
            try:
                async with asyncio.timeout(ASKED_S if self.state.question else IDLE_S):
                    await self._stirred.wait()
            except TimeoutError:
                self.leave()

    def leave(self) -> bool:
        """Accept no more commands, so that the session can close. During work, only return False."""
        if self.busy or self.state.background_runs or not all(one.guest for one in self._waiting):
            return False
        self.leaving = True
        self._stirred.set()
        return True

    async def stop(self) -> None:
        """Cancel the current work and wait until it has stopped."""
        if self._work is not None:
            self._work.cancel()
            await asyncio.wait([self._work])

    async def aclose(self) -> None:
        """Stop everything and release all resources; the session can be continued later."""
        self.leaving = True
        for task in self._behind:
            task.cancel()
        await asyncio.gather(*self._behind, return_exceptions=True)
        for receipt in self._waiting:
            if receipt.guest and commands.is_sendable(receipt.command):  # for the next owner
                CommandInbox(self.app.log.database).put(self.session_id, receipt.command)
            receipt.end(SessionResult(outcome="interrupted"))
        self._waiting.clear()
        await self.stop()
        await self.app.aclose()
        for subscriber in self._subscribers:
            if isinstance(subscriber, UpdateQueue):
                subscriber.close()

    def _note(self, update: StoredEvent | LiveUpdate) -> None:
        if isinstance(update, StoredEvent) and isinstance(update.event, TaskReported) and not self._driven:
            self._reported = True
            self._advance()

    def _advance(self) -> None:
        self._stirred.set()
        if self._work is not None or self.leaving:
            return
        receipt = self._next()
        if receipt is None:
            return
        self._work = asyncio.ensure_future(self._perform(receipt.command))
        self._work.add_done_callback(partial(self._ended, receipt))
        self._steerable = isinstance(receipt.command, _REQUEST_WORK)
        self.show_status()
        receipt.take()
        answers = not isinstance(receipt.command, commands.SayMessage)
        for waiting in [*self._waiting]:  # messages of guests that came while a question was open
            if answers and self._acts_at_once(waiting.command):
                self._waiting.remove(waiting)
                waiting.end(self._act(waiting.command))

    def _next(self) -> Receipt | None:
        state = self.state
        if self._reported and state.question is None:
            self._reported = False
            request = state.request
            if request is not None and request.outcome == "deferred" and not state.background_runs:
                return Receipt(commands.ContinueWork(), guest=True)
        for receipt in [*self._waiting]:
            standing = self.standing(receipt.command, guest=receipt.guest)
            if standing is not None:
                self._waiting.remove(receipt)
            if standing:
                receipt.end(SessionResult(objection=standing))
            elif standing == "":
                return receipt
        return None

    def _ended(self, receipt: Receipt, work: asyncio.Task[SessionResult]) -> None:
        self._work = None
        if work.cancelled():
            result: SessionResult | BaseException = SessionResult(outcome="interrupted")
        else:
            result = work.exception() or work.result()
        if isinstance(result, SessionResult) and result.outcome is not None:
            self.outcome = result.outcome
        if receipt.guest and isinstance(result, UserError):
            self.app.session.record(ErrorReported.of(result))
        elif receipt.guest and isinstance(result, BaseException):
            _log.error("a command of a guest failed", exc_info=result)
        if self._title is not None and isinstance(result, SessionResult) and result.outcome == "done":
            self._keep(self._title.give())
        self._advance()
        if self._work is None:
            self.show_status()
        receipt.end(result)

    def _act(self, command: SessionCommand) -> SessionResult:
        match command:
            case commands.RunShellCommand():
                self.app.session.steer(command)
            case commands.SayMessage() if not self._stops(command):
                self.app.session.steer(command)
            case commands.CancelWork() | commands.SayMessage():
                self._cancel()
            case commands.StopBackground():
                return SessionResult(objection="" if self.app.tasks.cancel() else "tasks.none")
            case commands.SetMode(mode=mode):
                self.app.session.record(ModeChanged(mode=mode))
            case commands.SetEffort(effort=effort):
                self.app.session.record(EffortChanged(effort=effort))
            case commands.ChangePermission(kind=kind, change=change):
                if change == "revoked":
                    self.app.grants.revoke(kind)
                elif change == "everywhere" and kind.what not in ("command", "site"):
                    return SessionResult(objection="permissions.only_here")
                elif kind in self.state.allowed or self.app.grants.cover(kind):  # the user has allowed it
                    self.app.grants.keep(kind, everywhere=change == "everywhere")
                else:
                    return SessionResult(objection="clients.not_offered")
                self.app.session.record(PermissionChanged(kind=kind, change=change))
            case commands.RateRequest(rating=rating):
                rated = self.app.chat.rate(rating)
                return SessionResult(objection="" if rated else "stats.rate_nothing")
            case commands.ForkSession(before=before):
                newer = changed_since(self.app.log.load(self.session_id), before)
                return SessionResult(session_id=fork(self.app.log, self.session_id, before), newer=newer)
            case commands.ForgetMemories(numbers=numbers):
                return SessionResult(forgotten=len(Memories(self.app.log.database).delete(numbers)))
            case _:
                raise NotImplementedError(command)
        return SessionResult()

    async def _perform(self, command: SessionCommand) -> SessionResult:
        result = await self._carrying_out.perform(command)
        return self._act(command) if result is None else result

    def _cancel(self) -> None:
        """Stop the current work, else the request that waits for the background, else the background (C4)."""
        request = self.state.request
        if self._driven:
            self.app.tasks.cancel()
        if self._work is not None:
            self._work.cancel()
        elif request is not None and request.outcome != "interrupted" and self.state.question is None:
            self.app.chat.interrupt()
        else:
            self.send(commands.StopBackground())

    def _keep(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def _serve_inbox(self) -> None:
        """Carry out commands of other processes, each when it can begin.

        A command is marked as taken first, so a crash may lose it, but it is never carried out twice.
        """
        database = self.app.log.database
        inbox, seen = CommandInbox(database), -1
        waiting: Sequence[WaitingCommand] = ()
        dated: dict[int, SessionCommand] = {}
        while True:
            with suppress(UserError):  # the database is unreachable: the work itself reports it
                version = database.version()
                if waiting or version != seen:
                    waiting, seen = inbox.waiting(self.session_id), version
                for number, command in waiting:
                    dated.setdefault(number, self._dated(command))
                    standing = self.standing(command, guest=True)
                    if standing is not None and inbox.settle(number, standing) and not standing:
                        self.send(dated.pop(number), guest=True)
            await asyncio.sleep(_LOOK_S)
