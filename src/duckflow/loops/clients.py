"""Other windows on the session: what they ask for is taken by the process that has it open (M7).

There is no daemon. Every event is in the database, so whoever wants to see a session reads along; what they
want done waits in its inbox. The owner looks there several times a second, which costs one number.
"""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from duckflow.domain.commands import ClientCommand
from duckflow.domain.errors import UserError
from duckflow.loops.session import Session
from duckflow.store.command_inbox import CommandInbox, WaitingCommand
from duckflow.store.database.database import Database

LOOK_S = 0.15

Receive = Callable[[ClientCommand], Callable[[], object] | str | None]
"""What an interface makes of a command: what to do, or why not (a catalogue key), or None for later."""


class Clients:
    """Serves the commands of other processes for the session that is open in this one."""

    def __init__(self, session: Session, database: Database) -> None:
        self._session = session
        self._database = database
        self._inbox = CommandInbox(database)
        self._seen = -1

    async def serve(self, receive: Receive) -> None:
        """Let the interface take what comes, until this is cancelled. Noted first, done afterwards: a
        command may be lost in a crash, but is never carried out twice."""
        waiting = False
        while True:
            with suppress(UserError):  # the database is busy or away: whoever works says so
                version = self._database.version()
                if waiting or version != self._seen:
                    found = self._inbox.waiting(self._session.state.session_id)
                    waiting = self._take(found, receive)
                    self._seen = version
            await asyncio.sleep(LOOK_S)

    def _take(self, found: Sequence[WaitingCommand], receive: Receive) -> bool:
        """Take each that can be; whether one is left."""
        left = False
        for number, command in found:
            answer = receive(command)
            if answer is None:
                left = True
            elif isinstance(answer, str):
                self._inbox.settle(number, answer)
            elif self._inbox.settle(number):
                answer()
        return left
