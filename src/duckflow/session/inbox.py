"""Commands of other processes: the only place that looks for them in the database (SPEC M7).

There is no daemon. Other processes read the events in the database and leave commands in the session's inbox.
The process that has the session open looks there several times a second, which costs one number.
"""

import asyncio
from contextlib import suppress
from typing import Protocol

from duckflow.domain.commands import ClientCommand
from duckflow.domain.errors import UserError
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.database.database import Database

_LOOK_S = 0.15


class CommandTaker(Protocol):
    """The host, as its inbox sees it."""

    def standing(self, command: ClientCommand, *, guest: bool) -> str | None:
        """Empty if the command can begin now, else the objection to it, or None while it must wait."""
        ...

    def send(self, command: ClientCommand, *, guest: bool) -> object:
        """Carry it out."""
        ...


class InboxPoller:
    """Hands the commands in a session's inbox to its host."""

    def __init__(self, host: CommandTaker, database: Database, session_id: str) -> None:
        self._host = host
        self._database = database
        self._inbox = CommandInbox(database)
        self._session_id = session_id
        self._seen = -1

    async def poll(self) -> None:
        """Look until cancelled."""
        waiting = False
        while True:
            with suppress(UserError):  # the database is busy or away: the work itself says so
                version = self._database.version()
                if waiting or version != self._seen:
                    waiting = self._hand_over()
                    self._seen = version
            await asyncio.sleep(_LOOK_S)

    def _hand_over(self) -> bool:
        """Settle each command that need not wait, then have it carried out; True if one is left.

        In this order a command may be lost in a crash, but is never carried out twice.
        """
        left = False
        for number, command in self._inbox.waiting(self._session_id):
            standing = self._host.standing(command, guest=True)
            if standing is None:
                left = True
            elif self._inbox.settle(number, standing) and not standing:
                self._host.send(command, guest=True)
        return left


async def leave_command(inbox: CommandInbox, session_id: str, command: ClientCommand) -> str:
    """Leave a command for the process that has the session open; the objection to it once that is known."""
    number = inbox.put(session_id, command)
    if not number:
        return "web.too_many"
    while (objection := inbox.result(number)) is None:  # noqa: ASYNC110 - another process sets it
        await asyncio.sleep(_LOOK_S)
    return objection
