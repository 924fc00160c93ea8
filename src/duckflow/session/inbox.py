"""Commands of other processes: the only place that looks for them in the database (M7).

There is no daemon. Other processes read the events in the database and leave commands in the session's inbox.
The process that has the session open looks there several times a second, which costs one number.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress

from duckflow.domain.commands import ClientCommand
from duckflow.domain.errors import UserError
from duckflow.store.command_inbox import CommandInbox, WaitingCommand
from duckflow.store.database.database import Database

_LOOK_S = 0.15


class InboxPoller:
    """Looks into a session's inbox for the process that has it open."""

    def __init__(self, database: Database, session_id: str) -> None:
        self._database = database
        self._inbox = CommandInbox(database)
        self._session_id = session_id
        self._seen = -1

    async def arrivals(self) -> AsyncIterator[Sequence[WaitingCommand]]:
        """Everything that waits, after each look that may have found something new."""
        waiting: Sequence[WaitingCommand] = ()
        while True:
            with suppress(UserError):  # the database is busy or away: the work itself says so
                version = self._database.version()
                if waiting or version != self._seen:
                    waiting = self._inbox.waiting(self._session_id)
                    self._seen = version
            if waiting:
                yield waiting
            await asyncio.sleep(_LOOK_S)

    def settle(self, number: int, objection: str) -> bool:
        """Record that a command was taken, or the objection to it; False if that has happened before."""
        with suppress(UserError):
            return self._inbox.settle(number, objection)
        return False


async def leave_command(inbox: CommandInbox, session_id: str, command: ClientCommand) -> str:
    """Leave a command for the process that has the session open; the objection to it once that is known."""
    number = inbox.put(session_id, command)
    if not number:
        return "web.too_many"
    while (objection := inbox.result(number)) is None:  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(_LOOK_S)
    return objection
