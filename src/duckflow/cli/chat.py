"""What `duckflow` does: the conversation."""

import asyncio
import os
import sys
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from duckflow.app import App, build, choose, open_log
from duckflow.cli.flags import settings_flags
from duckflow.config.loading import load
from duckflow.config.places import state_dir
from duckflow.config.settings import Settings
from duckflow.domain.commands import ChooseWay
from duckflow.domain.errors import UsageError
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.llm.relay import Relay
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.keyboard import open_keyboard
from duckflow.ui.paper import Paper
from duckflow.ui.relay_desk import RelayDesk
from duckflow.ui.screen import Screen
from duckflow.ui.story import last_exchange
from duckflow.ui.terminal import Conversation

HISTORY = "history"


@dataclass(frozen=True, kw_only=True)
class Start:
    """How the conversation was opened. Without a folder, it is the session's own."""

    model: str | None
    mode: str | None
    folder: Path | None
    trust: bool
    last: bool
    session: str | None = None


class _Engine:
    """The engine as the conversation sees it."""

    def __init__(self, app: App) -> None:
        self._app = app

    @property
    def state(self) -> AgentState:
        return self._app.session.state

    async def say(self, said: str) -> RequestOutcome:
        return await self._app.chat.say(said)

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        return await self._app.chat.choose(way)

    async def go_on(self) -> RequestOutcome:
        return await self._app.chat.go_on()

    def cancel_tasks(self) -> bool:
        return self._app.tasks.cancel()

    async def answer(self, *, yes: bool, reason: str = "") -> RequestOutcome:
        return await self._app.chat.answer(yes=yes, reason=reason)


def converse(start: Start) -> None:
    """Talk until the user leaves."""
    earlier = _earlier_session(start)
    folder = start.folder or Path(earlier.workspace if earlier else "")
    loaded = load(folder, trusted=start.trust, flags=settings_flags(start.model, start.mode))
    for notice in loaded.notices:
        sys.stderr.write(text(notice.key, **notice.values) + "\n")
    asyncio.run(_converse(earlier.id if earlier else None, folder, loaded.settings))


async def _converse(session_id: str | None, folder: Path, settings: Settings) -> None:
    choice = await choose(settings, os.environ)
    paper, keyboard = Paper(), open_keyboard(state_dir() / HISTORY)
    desk = RelayDesk(keyboard, paper)
    app = build(settings, choice, folder, session_id, os.environ, Relay(desk.show, desk.read))
    try:
        earlier = app.log.load(session_id) if session_id else ()
        app.session.subscribe(Screen(paper))
        app.begin()
        for line in last_exchange(earlier):
            paper.line(line, "dim")
        warming = asyncio.ensure_future(app.model.warm())
        conversation = Conversation(_Engine(app), keyboard, paper)
        app.session.subscribe(conversation)
        await conversation.run()
        warming.cancel()
    finally:
        await app.aclose()


def _earlier_session(start: Start) -> SessionSummary | None:
    if not start.last and start.session is None:
        return None
    with closing(open_log()) as log:
        sessions = Sessions(log.database)
        if start.session is not None:
            return sessions.show(start.session)
        found = sessions.latest(str((start.folder or Path()).resolve()))
    if found is None:
        raise UsageError("session.none_here", folder=str((start.folder or Path()).resolve()))
    return found
