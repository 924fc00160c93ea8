"""A second window on a session: reads along in the database and leaves commands in its inbox."""

import time
from collections.abc import Callable
from typing import Any

from duckflow.app.places import LIVE, open_log
from duckflow.config.places import state_dir
from duckflow.domain.commands import ClientCommand
from duckflow.domain.events import Event
from duckflow.domain.reduce.apply import apply
from duckflow.domain.state import AgentState
from duckflow.store.command_inbox import CommandInbox
from duckflow.store.live_file import LiveView, live_path, read_live
from duckflow.store.sessions import Sessions

PATIENCE_S = 120.0
"""Only there so that a failure ends."""


def wait_until(met: Callable[[], Any], what: str = "") -> Any:
    """Look until it is so; what was found."""
    deadline = time.monotonic() + PATIENCE_S
    while not (found := met()):
        assert time.monotonic() < deadline, f"waited in vain {what}"
        time.sleep(0.03)
    return found


class SecondWindow:
    """Opened on the session that was used last."""

    def __init__(self) -> None:
        self.log = open_log()
        self.inbox = CommandInbox(self.log.database)
        self.session = wait_until(lambda: Sessions(self.log.database).listed())[0].id

    @property
    def events(self) -> list[Event]:
        """All that has happened."""
        return [one.event for one in self.log.load_after(self.session, 0)]

    @property
    def state(self) -> AgentState:
        """The state as the events tell it."""
        state = AgentState(session_id=self.session)
        for recorded in self.log.load_after(self.session, 0):
            state = apply(state, recorded)
        return state

    @property
    def live(self) -> LiveView:
        """What is being written."""
        return read_live(live_path(state_dir() / LIVE, self.session))

    def send(self, command: ClientCommand) -> str:
        """Leave a command; what became of it."""
        number = self.inbox.put(self.session, command)
        wait_until(lambda: self.inbox.result(number) is not None, f"for {command}")
        return self.inbox.result(number) or ""

    def close(self) -> None:
        """Give the file back."""
        self.log.close()
