"""The sessions that an editor has open, one per folder. Opening another in the folder closes the first."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp import helpers, schema

from duckflow.api import OpenSession, Update, delete_session, find_session
from duckflow.cli.editors.connection import EditorConnection
from duckflow.cli.editors.options import SessionOptions, options_of
from duckflow.cli.editors.outcomes import usage_update
from duckflow.cli.editors.updates import SessionTranslator
from duckflow.cli.secrets import without_secrets
from duckflow.config.files.mcp_servers import foreign_servers
from duckflow.config.loading import LoadedSettings, load_as_trusted
from duckflow.domain.errors import ProviderError, UserError
from duckflow.domain.events import EffortChanged, ModeChanged, ModelChanged, StoredEvent
from duckflow.domain.frozen import replace
from duckflow.domain.modes import Mode
from duckflow.domain.session_client import SessionClient
from duckflow.i18n.catalogue import text
from duckflow.tools.files.unsaved import Unsaved
from duckflow.ui.commands.actions import CommandContext, dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand, listed_commands
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen

_ANNOUNCE_S = 0.1
"""Seconds to wait after sending a session's id, because editors drop updates of unknown sessions."""
_READ_S = 10.0
LEFT_OUT = ("help", "fork", "expand", "new", "resume", "quit")
"""Commands that editors have themselves."""

EditorServers = Sequence[
    schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
]


@dataclass
class EditorSession:
    """A session that an editor has open."""

    session: OpenSession
    root: Path
    tell: SessionTranslator
    notices: Sequence[str]
    told_options: SessionOptions
    """Options as the editor knows them."""
    told_mode: Mode
    told_usage: schema.UsageUpdate | None = None
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    turn: asyncio.Future[schema.StopReason] | None = None
    """The current turn, until it ends."""

    @property
    def busy(self) -> bool:
        """True during a turn."""
        return self.turn is not None


class EditorSessions:
    """Opens and closes sessions, and announces the commands of each to the editor."""

    def __init__(self, editor: EditorConnection, flags: Mapping[str, object], *, trust: bool) -> None:
        self._editor = editor
        self._flags = flags
        self._trust = trust
        self._sessions: dict[str, EditorSession] = {}
        self._folders: dict[str, Path] = {}
        self._servers: dict[str, EditorServers] = {}
        self._behind: set[asyncio.Task[None]] = set()
        self.reads = False
        """True if the editor can send the unsaved text of its files."""

    def get(self, session_id: str) -> EditorSession | None:
        """Return a session; None if it is not open."""
        return self._sessions.get(session_id)

    async def aclose(self) -> None:
        """Close all sessions."""
        for session_id in [*self._sessions]:
            await self.put_aside(session_id)

    async def opened(
        self, session_id: str, folder: Path | None = None, servers: EditorServers | None = None
    ) -> EditorSession:
        """Return the session, reopened if it was closed."""
        opened = self._sessions.get(session_id)
        return opened or await self.open(folder or self._folders.get(session_id), session_id, servers)

    async def open(
        self, folder: Path | None, session_id: str | None, servers: EditorServers | None
    ) -> EditorSession:
        """Open a new or earlier session in a folder, after closing idle sessions there."""
        where = (folder or Path()).resolve()
        for name, other in [*self._sessions.items()]:
            if other.root == where and not other.busy:
                await self.put_aside(name)
        loaded = load_as_trusted(where, trust=self._trust, flags=self._flags)
        servers = self._servers.get(session_id or "", ()) if servers is None else servers
        loaded, left_out = with_servers(loaded, servers)
        session = OpenSession(
            where,
            resume=session_id,
            mode=cast("Any", self._flags.get("mode")),
            settings=loaded,
            attended=True,
            unsaved=self._unsaved(lambda: session.id) if self.reads else None,
        )
        await session.open()
        notices = [text(notice.key, **notice.values) for notice in loaded.notices]
        notices += [text("mcp.skipped", name=name, reason=why) for name, why in left_out.items()]
        notices += await _restore_model(session)
        await session.client.list_models()
        translator = SessionTranslator(session.app)
        opened = EditorSession(session, where, translator, notices, options_of(session), session.state.mode)
        self._sessions[session.id], self._folders[session.id] = opened, where
        self._servers[session.id] = servers
        session.listen(lambda update: self._note(opened, update))
        self.keep(self._announce(opened))
        return opened

    def keep(self, work: Coroutine[Any, Any, None]) -> None:
        """Let work run on its own."""
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def delete(self, session_id: str) -> None:
        """Delete a session, if it exists, after stopping its work."""
        await self.put_aside(session_id)
        self._folders.pop(session_id, None)
        self._servers.pop(session_id, None)
        try:
            known = find_session(session_id).id == session_id
        except UserError as error:
            if error.key != "store.no_session":
                raise
            return
        if known:
            await asyncio.to_thread(delete_session, session_id)

    async def tell_options(self, opened: EditorSession) -> None:
        """Send the options and the mode if they have changed since the editor learned them."""
        if not self._has(opened):
            return
        session, options, mode = opened.session, options_of(opened.session), opened.session.state.mode
        if mode != opened.told_mode:
            opened.told_mode = mode
            await self._editor.session_update(session.id, helpers.update_current_mode(mode))
        if options != opened.told_options:
            opened.told_options = options
            update = schema.ConfigOptionUpdate(session_update="config_option_update", config_options=options)
            await self._editor.session_update(session.id, update)

    async def tell_usage(self, opened: EditorSession) -> None:
        """Send the use of the context and the cost if they have changed."""
        if not self._has(opened) or not opened.session.state.prompt_tokens:
            return
        state = opened.session.state
        with suppress(ProviderError):  # the next message fails with the same error, and reports it
            update = usage_update(state, (await opened.session.app.model.traits()).window)
            if update != opened.told_usage:
                opened.told_usage = update
                await self._editor.session_update(state.session_id, update)

    def _note(self, opened: EditorSession, update: Update) -> None:
        if isinstance(update, StoredEvent) and isinstance(
            update.event, (ModeChanged, ModelChanged, EffortChanged)
        ):
            self.keep(self.tell_options(opened))

    async def put_aside(self, session_id: str) -> None:
        """Close a session, if it is open."""
        opened = self._sessions.pop(session_id, None)
        if opened is not None:
            await opened.session.close()

    async def _announce(self, opened: EditorSession) -> None:
        await asyncio.sleep(_ANNOUNCE_S)
        if not self._has(opened):
            return
        await self._list_commands(opened)
        for line in opened.notices:
            shown = helpers.update_agent_thought_text(f"{line}\n")
            await self._editor.session_update(opened.session.id, shown)
        servers = opened.session.app.mcp
        if servers is not None:
            await servers.ready()
            if self._has(opened) and any(one.prompts for one in servers.reports()):
                await self._list_commands(opened)

    def _has(self, opened: EditorSession) -> bool:
        return any(one is opened for one in self._sessions.values())  # a closed session has no id

    async def _list_commands(self, opened: EditorSession) -> None:
        commands = helpers.update_available_commands(available_commands(opened.session.client))
        await self._editor.session_update(opened.session.id, commands)

    def _unsaved(self, session_id: Callable[[], str]) -> Unsaved:
        async def read(path: Path) -> str | None:
            try:
                answer = await asyncio.wait_for(
                    self._editor.read_text_file(session_id=session_id(), path=str(path)), _READ_S
                )
            except (acp.RequestError, TimeoutError):
                return None
            return answer.content

        return read


async def _restore_model(session: OpenSession) -> Sequence[str]:
    """Use the model that was last chosen in this session; return a notice if it can't be used any more."""
    chosen = [one.event.model for one in session.events() if isinstance(one.event, ModelChanged)]
    if chosen and chosen[-1] != session.state.model:
        try:
            await session.set_model(chosen[-1])
        except UserError as error:
            return [without_secrets(str(error))]
    return []


def with_servers(loaded: LoadedSettings, servers: EditorServers) -> tuple[LoadedSettings, Mapping[str, str]]:
    """Add an editor's servers to the settings; return the unusable ones with the reason.

    An editor may have read them from a project's settings. So they run in the sandbox, with the network, the
    folder and the files that their command names, but without the user's variables, and the user is asked
    before each call (L4, M6). A server in the user's settings with the same name is used instead.
    """
    if not servers:
        return loaded, {}
    found, left_out = foreign_servers({one.name: _entry(one) for one in servers})
    filled = {name for name, one in found.items() if "${" in str((one.env, one.headers))}
    left_out |= dict.fromkeys(sorted(filled), "variables of yours are not passed on")
    mcp = loaded.settings.mcp
    ours = {name: one for name, one in found.items() if name not in filled}
    settings = replace(loaded.settings, mcp=replace(mcp, servers={**ours, **mcp.servers}))
    return replace(loaded, settings=settings), left_out


def _entry(server: object) -> Mapping[str, Any]:
    match server:
        case schema.McpServerStdio():
            env = {one.name: one.value for one in server.env}
            return {"command": server.command, "args": server.args, "env": env}
        case schema.HttpMcpServer() | schema.SseMcpServer():
            return {"url": server.url, "headers": {one.name: one.value for one in server.headers}}
        case _:
            return {}  # a server reached through the editor, which is not supported


def available_commands(client: SessionClient) -> list[schema.AvailableCommand]:
    """Return Duckflow's commands, the user's own, and the prompts of MCP servers."""
    return [
        schema.AvailableCommand(
            name=name,
            description=does,
            input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=takes))
            if takes
            else None,
        )
        for name, takes, does in listed_commands(client)
        if name not in LEFT_OUT
    ]


async def run_command(client: SessionClient, typed: TypedCommand) -> str:
    """Run a command and return its output."""
    lines: list[str] = []
    writer = Writer(lines.extend)
    await dispatch_in_turn(CommandContext(client, writer, Screen(writer), _stay), typed)
    shown = "\n".join(line.rstrip("\n") for line in lines)
    return f"```\n{shown}\n```\n" if shown else ""


def _stay(_session: str | None) -> None:
    """Do nothing, because the editor decides when to leave a session."""
