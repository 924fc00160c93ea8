"""The conversation in a terminal: sessions until the user leaves, or a window on one of another process."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, closing
from pathlib import Path

from duckflow.api import find_session, latest_session
from duckflow.app.app import App
from duckflow.app.opening import Opening
from duckflow.app.places import holder_of, open_log
from duckflow.cli.log_file import open_log_file
from duckflow.cli.plain_flags import ConversationOptions, settings_flags
from duckflow.cli.secrets import redactor
from duckflow.config.loading import LoadedSettings, load
from duckflow.config.trust import remember_trust, trust_state
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.events import SessionStarted, StoredEvent
from duckflow.domain.files.programs import program_environment
from duckflow.domain.modes import Mode
from duckflow.domain.reduce.rewind import present
from duckflow.evaluation.project_tests import ProjectTests
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.session.channel import UpdateQueue
from duckflow.session.host import SessionHost
from duckflow.session.local import LocalSession
from duckflow.session.remote import RemoteSession
from duckflow.store.sessions import Sessions, SessionSummary
from duckflow.ui.conversation import Conversation
from duckflow.ui.frontend import Frontend
from duckflow.ui.input.editor import TextEditor, find_editor
from duckflow.ui.output.escaping import visible
from duckflow.ui.questions import RelayPrompt
from duckflow.ui.screen import Screen
from duckflow.ui.transcript import last_exchange

_CODE = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cpp", ".rb")
_LOOKED_AT = 200


async def converse(options: ConversationOptions, frontend: Frontend) -> None:
    """Run sessions until the user leaves."""
    open_log_file()
    earlier = _earlier_session(options)
    folder = options.workspace or Path(earlier.workspace if earlier else "")
    ask, show, digest = frontend.keyboard.answer, frontend.writer.line, None
    if not options.trust:
        digest = await settle_trust(folder, ask, show)
    flags = settings_flags(options.model, options.mode)
    loaded = load(folder, trusted=options.trust or digest is not None, digest=digest, flags=flags)
    _adapt(frontend, loaded)
    for notice in loaded.notices:
        show(text(notice.key, **notice.values), "yellow")
    if options.request:
        frontend.keyboard.inbox.put(options.request)
    session: str | None = earlier.id if earlier else ""
    while session is not None:
        session = await _one_session(session or None, folder, loaded, frontend)


async def attach(wanted: str, frontend: Frontend) -> None:
    """Show a session of another process until the user leaves or that process closes it."""
    found = find_session(wanted)
    if holder_of(found.workspace) != found.id:
        raise UsageError("attach.nobody", session=found.id)
    _adapt(frontend, load(Path(found.workspace)))
    with closing(open_log()) as log:
        async with aclosing(RemoteSession(log, found, redactor())) as session:
            for line in last_exchange(session.earlier()):
                frontend.writer.line(line, "dim")
            frontend.writer.line(text("attach.hello", session=found.id), "dim")
            editor = TextEditor(frontend.keyboard)
            conversation = Conversation(session, frontend, Screen(frontend.writer), editor, guest=True)
            await conversation.run(session.updates())


async def settle_trust(
    folder: Path, ask: Callable[[str], Awaitable[str | None]], show: Callable[[str], None]
) -> str | None:
    """Return the hash of the folder's configuration if the user trusts it, else None (SAFETY 6)."""
    trust = trust_state(folder)
    if trust.status == "nothing":
        return None
    if trust.status == "trusted":
        return trust.digest
    show("\n".join([text(f"trust.{trust.status}", path=trust.path), "", visible(trust.content), ""]))
    while (said := await ask(text("trust.question"))) is not None:
        answer = read_answer(said)
        if answer is not None and answer.yes:
            remember_trust(trust)
            show(text("trust.remembered", path=trust.path))
            return trust.digest
        if answer is not None:
            break
    show(text("trust.declined", path=trust.path))
    return None


async def _one_session(
    session_id: str | None, folder: Path, loaded: LoadedSettings, frontend: Frontend
) -> str | None:
    """Run one session; return the id of the next one, empty for a new one, None to leave."""
    earlier = _earlier_events(session_id) if session_id else ()
    relay = RelayPrompt(frontend.keyboard, frontend.writer)
    screen = Screen(frontend.writer)
    opening = Opening(loaded, folder, session_id, attended=True, relay=relay)
    updates = UpdateQueue()
    async with aclosing(await SessionHost.open(opening, updates)) as host:
        for update in updates.pending():
            screen(update)
            if isinstance(update, StoredEvent) and isinstance(update.event, SessionStarted):
                for line in last_exchange(earlier):
                    frontend.writer.line(line, "dim")
        frontend.writer.line(await _welcome(host.app), "dim")
        wish = await _talk(host, loaded, frontend, screen, updates)
    for update in updates.pending():
        screen(update)
    if wish is None and host.state.said and frontend.prompt is not None:
        frontend.writer.line(text("chat.left"), "dim")
    return wish


async def _talk(
    host: SessionHost, loaded: LoadedSettings, frontend: Frontend, screen: Screen, updates: UpdateQueue
) -> str | None:
    client = LocalSession(host, loaded)
    editor = find_editor(host.folder, os.environ) if frontend.prompt is not None else ()
    environment = program_environment(host.folder, os.environ)
    conversation = Conversation(client, frontend, screen, TextEditor(frontend.keyboard, editor, environment))
    async with asyncio.TaskGroup() as behind:
        ready = behind.create_task(client.keep_ready())
        wish = await conversation.run(updates)
        ready.cancel()
    return wish


def _adapt(frontend: Frontend, loaded: LoadedSettings) -> None:
    ui = loaded.settings.ui
    frontend.adapt(ui.theme, vi=ui.editing_mode == "vi", notices=ui.notify)


def _earlier_session(options: ConversationOptions) -> SessionSummary | None:
    if options.session is not None:
        return find_session(options.session)
    return latest_session(options.workspace or Path()) if options.last else None


def _earlier_events(session_id: str) -> Sequence[StoredEvent]:
    with closing(open_log()) as log:
        return present(log.load(session_id))


async def _welcome(app: App) -> str:
    """Return a few lines in a new folder, one line in a known folder."""
    known = Sessions(app.log.database).listed(str(app.workspace.root))
    if app.started.resumed or len(known) > 1:
        return text("chat.hint")
    try:
        listing = await asyncio.to_thread(app.workspace.list, ".", depth=1, limit=_LOOKED_AT)
    except ToolError:
        return text("chat.hint")
    names = [entry.path for entry in listing.entries]
    return start_text(
        app.session.state.mode,
        rules=app.rules.now.files,
        tests=await asyncio.to_thread(ProjectTests(app.workspace).find),
        sandbox=(await app.shell.sandbox()).level,
        example=next((name for name in names if name.endswith(_CODE)), ""),
    )


def start_text(mode: Mode, rules: Sequence[str], tests: str, sandbox: str, example: str) -> str:
    """Return lines about rules, tests, sandbox and mode, and an example of a first message."""
    shell = {"none": "start.no_sandbox", "external": "start.external"}.get(sandbox, "start.sandbox")
    lines = [
        text("start.rules", files=", ".join(rules)) if rules else text("start.no_rules"),
        text("start.tests", command=tests) if tests else text("start.no_tests"),
        text(shell, name=sandbox),
        text(f"start.asks.{mode}"),
        text("start.try_file", file=example) if example else text("start.try"),
    ]
    return "\n".join(["", *(f"  {line}" for line in lines), "", text("chat.hint")])
