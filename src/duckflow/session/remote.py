"""Client of a session that another process has open: reads its events, leaves commands in its inbox (M7)."""

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence

from duckflow.app.places import LIVE, holder_of
from duckflow.config.places import state_dir
from duckflow.domain.commands import ClientCommand, SayMessage, SessionCommand, SessionResult, is_sendable
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import RequestFinished, Rewound, StoredEvent, UserMessage
from duckflow.domain.live_updates import LiveUpdate, OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown
from duckflow.domain.reduce.apply import apply
from duckflow.domain.reduce.rewind import present
from duckflow.domain.session_client import (
    PastMessage,
    SessionClient,
    SessionUpdate,
    StatusChanged,
    works_after,
)
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory
from duckflow.i18n.answers import is_stop
from duckflow.loops.session import Session
from duckflow.loops.undo.rewind import past_messages
from duckflow.safety.redaction.redactor import Redactor
from duckflow.session.channel import Receipt
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.event_log import SqliteEventLog
from duckflow.store.live_file import LiveView, live_path, read_live
from duckflow.store.memory import Memories
from duckflow.store.sessions import SessionSummary

_LOOK_S = 0.1
_OWNER_LOOKS = 10
"""Number of reads between two checks that the session is still open."""


async def leave_command(inbox: CommandInbox, session_id: str, command: ClientCommand) -> str:
    """Leave a command for the process that has the session open; return its reason to refuse, or ""."""
    number = inbox.put(session_id, command)
    if not number:
        return "web.too_many"
    while (objection := inbox.result(number)) is None:  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(_LOOK_S)
    return objection


class RemoteSession(SessionClient):
    """A session of another process. A result means that a command was accepted, not that it was done."""

    def __init__(self, log: SqliteEventLog, found: SessionSummary, redactor: Redactor) -> None:
        self._log = log
        self._found = found
        self._redactor = redactor
        self._inbox = CommandInbox(log.database)
        self._sending: set[asyncio.Task[None]] = set()
        self._unheard: list[str] = []
        self._version = -1
        self._live = LiveView()
        self._state = Session(log, found.id).state
        self._busy = False
        for one in self.earlier():
            self._busy = works_after(one.event, self._busy)

    @property
    def state(self) -> AgentState:
        """State after the last event read."""
        return self._state

    @property
    def busy(self) -> bool:
        """True if the other process works on a request."""
        return self._busy

    @property
    def waiting(self) -> Sequence[str]:
        """Messages that this window has sent and that the other process has not taken yet."""
        return tuple(self._unheard)

    def earlier(self) -> Sequence[StoredEvent]:
        """Return all events, except those that were rewound."""
        return present(self._log.load(self._found.id))

    def send(self, command: SessionCommand) -> Receipt:
        """Leave a command in the inbox, with secrets removed. Refuse commands that need the owner."""
        receipt = Receipt(command)
        if is_sendable(command):
            cleaned = self._redactor.clean_all(command)
            if isinstance(cleaned, SayMessage):
                self._unheard.append(cleaned.text)
            leaving = asyncio.ensure_future(self._leave(receipt, cleaned))
            self._sending.add(leaving)
            leaving.add_done_callback(self._sending.discard)
        else:
            receipt.end(UsageError("attach.not_here", session=self._found.id))
        return receipt

    async def updates(self) -> AsyncIterator[SessionUpdate]:
        """Yield updates as long as a process has the session open."""
        yield StatusChanged(busy=self.busy)
        looks = 0
        while looks % _OWNER_LOOKS or holder_of(self._found.workspace) == self._found.id:
            for recorded in self._read():
                yield recorded
            for update in self._read_live():
                yield update
            looks += 1
            await asyncio.sleep(_LOOK_S)

    async def aclose(self) -> None:
        """Stop waiting for results."""
        for task in self._sending:
            task.cancel()
        await asyncio.gather(*self._sending, return_exceptions=True)

    def messages(self) -> Sequence[PastMessage]:
        """Return the user's messages, oldest first."""
        return past_messages(self._log.load(self._found.id))

    def memories(self) -> Sequence[Memory]:
        """Return the memories for this folder, the newest first."""
        return Memories(self._log.database).listed(self._found.workspace)

    def _read(self) -> Iterator[SessionUpdate]:
        version = self._log.database.version()
        if version == self._version:
            return
        for one in self._log.load_after(self._found.id, self._state.seq):
            if isinstance(one.event, Rewound):
                self._state = Session(self._log, self._found.id).state
            elif one.seq > self._state.seq:
                self._state = apply(self._state, one)
            if isinstance(one.event, UserMessage):
                self._forget(one.event.text)
            elif isinstance(one.event, RequestFinished):
                self._unheard.clear()  # such as those that were commands with another text
            yield one
            busy = works_after(one.event, self._busy)
            if busy != self._busy:
                self._busy = busy
                yield StatusChanged(busy=busy)
        self._version = version

    def _read_live(self) -> Iterator[LiveUpdate]:
        live = read_live(live_path(state_dir() / LIVE, self._found.id))
        before, self._live = self._live, live
        if live.thinking and live.thinking != before.thinking:
            yield ThinkingShown(text=live.thinking.removeprefix(before.thinking))
        if live.reply and live.reply != before.reply:
            whole = not live.reply.startswith(before.reply)
            if whole:
                yield ReplyVoid()
            yield ReplyPiece(text=live.reply if whole else live.reply[len(before.reply) :])
        if live.output and live.output != before.output:
            yield OutputPiece(text=live.output.removeprefix(before.output) if before.output else live.output)

    def _forget(self, said: str) -> None:
        if said in self._unheard:
            self._unheard.remove(said)

    async def _leave(self, receipt: Receipt, command: ClientCommand) -> None:
        objection, error = "", None
        try:
            objection = await leave_command(self._inbox, self._found.id, command)
        except UserError as problem:
            error = problem
        if isinstance(command, SayMessage) and (objection or error or is_stop(command.text)):
            self._forget(command.text)  # it becomes no message of the conversation
        receipt.end(error or SessionResult(objection))
