"""The conversation with its engine: open a session, talk, and go on with another one if wanted."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from duckflow.api import find_session, latest_session
from duckflow.app.app import App
from duckflow.app.opening import open_app
from duckflow.app.places import open_log
from duckflow.cli.chat.engine import ChatEngine
from duckflow.cli.chat.trust import settle_trust
from duckflow.cli.chat.welcome import welcome
from duckflow.cli.log_file import open_log_file
from duckflow.cli.plain_flags import ConversationOptions, settings_flags
from duckflow.config.loading import LoadedSettings, load
from duckflow.domain.events import Recorded
from duckflow.domain.files.programs import program_environment
from duckflow.domain.reduce.rewind import present
from duckflow.i18n.catalogue import text
from duckflow.llm.local.relay import Relay
from duckflow.store.sessions import SessionSummary
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import Exit
from duckflow.ui.conversation import Conversation
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import Edit, edit_on_line, edit_with, find_editor
from duckflow.ui.output.writer import notifier
from duckflow.ui.questions import Questions
from duckflow.ui.relay import RelayPrompt
from duckflow.ui.screen import Screen
from duckflow.ui.transcript import last_exchange
from duckflow.ui.views.live.activity import prompt_view


async def converse(options: ConversationOptions, frontend: Frontend) -> None:
    """Talk until the user leaves for good."""
    open_log_file()
    earlier = _earlier_session(options)
    folder = options.workspace or Path(earlier.workspace if earlier else "")
    digest = (
        None if options.trust else await settle_trust(folder, frontend.keyboard.answer, frontend.writer.line)
    )
    loaded = load(
        folder,
        trusted=options.trust or digest is not None,
        digest=digest,
        flags=settings_flags(options.model, options.mode),
    )
    ui = loaded.settings.ui
    frontend.adapt(ui.theme, vi=ui.editing_mode == "vi")
    for notice in loaded.notices:
        frontend.writer.line(text(notice.key, **notice.values), "yellow")
    session: str | None = earlier.id if earlier else ""
    while session is not None:
        session = await _one_session(session or None, folder, loaded, frontend)


async def _one_session(
    session_id: str | None, folder: Path, loaded: LoadedSettings, frontend: Frontend
) -> str | None:
    """Talk in one session; the next one to go on with, empty for a new one, None to leave."""
    earlier = _earlier_events(session_id) if session_id else ()
    relay = RelayPrompt(frontend.keyboard, frontend.writer)
    screen = Screen(frontend.writer)
    app = await open_app(loaded, folder, session_id, Relay(relay.show, relay.read), screen)
    try:
        for line in last_exchange(earlier):
            frontend.writer.line(line, "dim")
        frontend.writer.line(await welcome(app, loaded.settings.rules.files), "dim")
        return await _talk(app, loaded, frontend, screen)
    finally:
        await app.aclose()


async def _talk(app: App, loaded: LoadedSettings, frontend: Frontend, screen: Screen) -> str | None:
    way_out = Exit()
    engine = ChatEngine(app, loaded)
    context = CommandContext(engine, frontend.writer, screen, way_out.leave)
    conversation = Conversation(
        context,
        frontend.keyboard,
        Questions(context, frontend.keyboard, _editing(frontend, app.workspace.root)),
        way_out,
        notifier(loaded.settings.ui.notify, frontend.signal),
    )
    app.session.subscribe(conversation)
    frontend.attach(prompt_view(engine, screen.activity, frontend.keyboard), engine)
    async with asyncio.TaskGroup() as behind:
        tasks = (
            behind.create_task(engine.warm(frontend.keyboard.refresh)),
            behind.create_task(app.clients.serve(conversation.receive)),
        )
        wish = await conversation.run()
        for task in tasks:
            task.cancel()
    await engine.aclose()
    if wish is None and app.session.state.said and frontend.prompt is not None:
        frontend.writer.line(text("chat.left"), "dim")
    return wish


def _editing(frontend: Frontend, root: Path) -> Edit:
    """The user's own editor if there is one and a terminal to open it on."""
    editor = find_editor(root, os.environ)
    if frontend.prompt is not None and editor:
        return edit_with(editor, program_environment(root, os.environ))
    return edit_on_line(frontend.keyboard, text("approval.edit"))


def _earlier_session(options: ConversationOptions) -> SessionSummary | None:
    if options.session is not None:
        return find_session(options.session)
    return latest_session(options.workspace or Path()) if options.last else None


def _earlier_events(session_id: str) -> Sequence[Recorded]:
    with closing(open_log()) as log:
        return present(log.load(session_id))
