"""Commands for sessions that another process owns: one process stores them, the owner runs them once."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from duckflow.domain.commands import ClientCommand, parse_command
from duckflow.store.database.database import Database

_MOST = 100
"""Largest number of commands that may wait for one session."""
_PUT = """INSERT INTO inbox (session_id, at, body)
SELECT :session, :at, :body
WHERE (SELECT count(*) FROM inbox WHERE session_id = :session AND result IS NULL) < :most"""
_SETTLE = "UPDATE inbox SET result = ?, body = '' WHERE id = ? AND result IS NULL"


class WaitingCommand(NamedTuple):
    """A command that has not been run yet."""

    number: int
    command: ClientCommand


class CommandInbox:
    """The inbox in a database. When a command is finished, its result is kept and its content erased."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, session_id: str, command: ClientCommand) -> int:
        """Store a command and return its number, or 0 if too many are waiting."""
        at, body = datetime.now(UTC).isoformat(), command.model_dump_json()
        row = {"session": session_id, "at": at, "body": body, "most": _MOST}
        with self._database.write() as connection:
            put = connection.execute(_PUT, row)
            return put.lastrowid or 0 if put.rowcount else 0

    def waiting(self, session_id: str) -> Sequence[WaitingCommand]:
        """Return the commands that wait for a session, oldest first."""
        query = "SELECT id, body FROM inbox WHERE session_id = ? AND result IS NULL ORDER BY id"
        rows = self._database.query(query, (session_id,))
        return [WaitingCommand(number, parse_command(body)) for number, body in rows]

    def settle(self, number: int, result: str = "") -> bool:
        """Store a result: "" for success, else the reason for failure. False if there already was one."""
        with self._database.write() as connection:
            return connection.execute(_SETTLE, (result, number)).rowcount > 0

    def result(self, number: int) -> str | None:
        """Return the result of a command; None while it waits."""
        rows = self._database.query("SELECT result FROM inbox WHERE id = ?", (number,))
        return rows[0][0] if rows else ""

    def sessions(self) -> Sequence[str]:
        """Return the sessions that have pending commands."""
        query = "SELECT DISTINCT session_id FROM inbox WHERE result IS NULL"
        return [session for (session,) in self._database.query(query)]
