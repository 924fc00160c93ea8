"""The conversation with its engine: open a session, talk, and go on with another one where that is wished."""

import asyncio
import os
from contextlib import closing
from pathlib import Path

from duckflow.app import App, build, choose, open_log
from duckflow.cli.chat.engine import ChatEngine
from duckflow.cli.chat.folder_facts import find_out
from duckflow.cli.chat.start import ConversationStart
from duckflow.cli.chat.trust import settle_trust
from duckflow.cli.flags import settings_flags
from duckflow.cli.log_file import open_log_file
from duckflow.config.loading import Loaded, load
from duckflow.domain.errors import UsageError
from duckflow.i18n.catalogue import text
from duckflow.llm.local.relay import Relay
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import Exit
from duckflow.ui.conversation import Conversation
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.completion import known_of
from duckflow.ui.input.editor import Edit, edit_on_line, edit_text, editor_command
from duckflow.ui.input.relay import RelayPrompt
from duckflow.ui.output.notifications import notifier
from duckflow.ui.screen import Screen
from duckflow.ui.views.questions import Questions
from duckflow.ui.views.status_lines import look_of
from duckflow.ui.views.transcript import last_exchange
from duckflow.ui.views.welcome import start_text


async def converse(start: ConversationStart, front: Frontend) -> None:
    """Talk until the user leaves for good."""
    open_log_file()
    earlier = _earlier_session(start)
    folder = start.folder or Path(earlier.workspace if earlier else "")
    digest = None if start.trust else await settle_trust(folder, front.keyboard.answer, front.paper.line)
    loaded = load(
        folder,
        trusted=start.trust or digest is not None,
        digest=digest,
        flags=settings_flags(start.model, start.mode),
    )
    for notice in loaded.notices:
        front.paper.line(text(notice.key, **notice.values), "yellow")
    session: str | None = earlier.id if earlier else ""
    while session is not None:
        session = await _one_session(session or None, folder, loaded, front)


async def _one_session(session_id: str | None, folder: Path, loaded: Loaded, front: Frontend) -> str | None:
    """Talk in one session; the next one to go on with, empty for a new one, None to leave."""
    settings = loaded.settings
    choice = await choose(settings, os.environ)
    desk = RelayPrompt(front.keyboard, front.paper)
    app = build(settings, choice, folder, session_id, os.environ, Relay(desk.show, desk.read))
    try:
        return await _talk(app, session_id, loaded, front)
    finally:
        await app.aclose()


async def _talk(app: App, session_id: str | None, loaded: Loaded, front: Frontend) -> str | None:
    earlier = app.log.load(session_id) if session_id else ()
    screen, way_out = Screen(front.paper), Exit()
    engine = ChatEngine(app, loaded)
    app.session.subscribe(screen)
    found = await find_out(app)
    app.begin()
    for line in last_exchange(earlier):
        front.paper.line(line, "dim")
    front.paper.line(start_text(app.session.state, found), "dim")
    conversation = Conversation(
        CommandContext(engine, front.paper, screen, way_out.leave),
        front.keyboard,
        Questions(front.keyboard, front.paper, front.rows, _editing(front)),
        way_out,
        notifier(loaded.settings.ui.notify, front.signal),
    )
    app.session.subscribe(conversation)
    front.dress(look_of(engine, screen.activity, front.keyboard), known_of(engine))
    async with asyncio.TaskGroup() as behind:
        tasks = (
            behind.create_task(engine.warm(front.keyboard.refresh)),
            behind.create_task(_leave(front, way_out)),
        )
        wish = await conversation.run()
        for task in tasks:
            task.cancel()
    await engine.aclose()
    return wish


def _editing(front: Frontend) -> Edit:
    """The user's own editor where there is one and a terminal to open it on."""
    if front.prompt is not None and editor_command():
        return edit_text
    return edit_on_line(front.keyboard, text("approval.edit"))


async def _leave(front: Frontend, way_out: Exit) -> None:
    """Without a terminal there is nobody to talk to."""
    await front.left.wait()
    way_out.leave()


def _earlier_session(start: ConversationStart) -> SessionSummary | None:
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
