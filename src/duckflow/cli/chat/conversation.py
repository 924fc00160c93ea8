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
from duckflow.ui.output.escaping import on_one_line, visible
from duckflow.ui.questions import RelayPrompt
from duckflow.ui.screen import Screen, recall

_CODE = (".py", ".ts", ".js", ".go", ".rs", ".java", ".c", ".cpp", ".rb")
_LOOKED_AT = 200
_DEPTH, _LISTED = 3, 2_000
_BESIDE = frozenset(
    ("docs", "doc", "examples", "tests", "test", "node_modules", "vendor", "third_party", "build")
)
"""Folders whose files are not a good example of a first question."""


async def converse(options: ConversationOptions, frontend: Frontend) -> None:
    """Run sessions until the user leaves. One that another process has open gets a second window."""
    open_log_file()
    earlier = _earlier_session(options)
    if options.request:
        frontend.keyboard.inbox.put(options.request)
    if earlier is not None and holder_of(earlier.workspace) == earlier.id:
        await attach(earlier.id, frontend)
        return
    folder = options.workspace or Path(earlier.workspace if earlier else "")
    ask, show, digest = frontend.keyboard.answer, frontend.writer.line, None
    if not options.trust:
        digest = await settle_trust(folder, ask, show)
    flags = settings_flags(options.model, options.mode)
    loaded = load(folder, trusted=options.trust or digest is not None, digest=digest, flags=flags)
    _adapt(frontend, loaded)
    for notice in loaded.notices:
        show(text(notice.key, **notice.values), "yellow")
    session: str | None = earlier.id if earlier else ""
    # A mode in the settings or a flag counts at the start. Later the user goes between sessions as they are.
    keeps_mode = loaded.sources["mode"].kind == "default"
    while session is not None:
        opening = Opening(loaded, folder, session or None, attended=True, keeps_mode=keeps_mode)
        session, keeps_mode = await _one_session(opening, frontend), True


async def attach(wanted: str, frontend: Frontend) -> None:
    """Show a session of another process until the user leaves or that process closes it."""
    found = find_session(wanted)
    if holder_of(found.workspace) != found.id:
        raise UsageError("attach.nobody", session=found.id)
    _adapt(frontend, load(Path(found.workspace)))
    with closing(open_log()) as log:
        async with aclosing(RemoteSession(log, found, redactor())) as session:
            recall(session.earlier(), frontend.writer)
            frontend.writer.line(
                text("attach.hello", title=on_one_line(found.title) or text("session.untitled")), "dim"
            )
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


async def _one_session(opening: Opening, frontend: Frontend) -> str | None:
    """Run one session; return the id of the next one, empty for a new one, None to leave."""
    earlier = _earlier_events(opening.session_id) if opening.session_id else ()
    relay = RelayPrompt(frontend.keyboard, frontend.writer)
    screen = Screen(frontend.writer)
    updates = UpdateQueue()
    async with aclosing(await SessionHost.open(opening._replace(relay=relay), updates)) as host:
        for update in updates.pending():
            screen(update)
            if isinstance(update, StoredEvent) and isinstance(update.event, SessionStarted):
                recall(earlier, frontend.writer)
        frontend.writer.line(await _welcome(host.app), "dim")
        wish = await _talk(host, opening.loaded, frontend, screen, updates)
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
    if app.started.resumed:
        return f"\n{text('chat.hint')}"
    if len(known) > 1:
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
        example=next((name for name in names if name.endswith(_CODE)), "")
        or await asyncio.to_thread(_largest_code, app),
    )


def _largest_code(app: App) -> str:
    """Return the largest code file in the folders below that hold the program itself; empty without one."""
    listing = app.workspace.list(".", depth=_DEPTH, limit=_LISTED)
    code = [one for one in listing.entries if one.path.endswith(_CODE)]
    own = [one for one in code if _BESIDE.isdisjoint(one.path.split("/"))]
    return max(own, key=lambda one: one.size).path if own else ""


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
