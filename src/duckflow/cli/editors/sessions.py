"""The sessions an editor has open: one a folder, opened again whenever the editor comes back to one.

If the editor wants another session in a folder, that one is opened and the other put aside.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import acp
from acp import helpers

from duckflow.api import OpenSession
from duckflow.cli.editors.commands import available_commands
from duckflow.cli.editors.mcp_servers import EditorServers, with_servers
from duckflow.cli.editors.updates import SessionTranslator
from duckflow.config.loading import LoadedSettings, load_as_trusted
from duckflow.i18n.catalogue import text
from duckflow.tools.files.unsaved import Unsaved

_ANNOUNCE_S = 0.1
"""After a session's id was sent: editors drop what is told of a session they do not know yet."""
_READ_S = 10.0


@dataclass
class EditorSession:
    """A session that an editor has open."""

    session: OpenSession
    loaded: LoadedSettings
    root: Path
    tell: SessionTranslator
    left_out: Mapping[str, str]
    """MCP servers of the editor's that can't be used, and why."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    busy: bool = False


class EditorSessions:
    """Opens sessions, puts them aside, and tells the editor what there is in each."""

    def __init__(self, editor: acp.Client, flags: Mapping[str, object], *, trust: bool) -> None:
        self._editor = editor
        self._flags = flags
        self._trust = trust
        self._sessions: dict[str, EditorSession] = {}
        self._folders: dict[str, Path] = {}
        self._servers: dict[str, EditorServers] = {}
        self._behind: set[asyncio.Task[None]] = set()
        self.reads = False
        """Whether the editor can be asked for files that are not saved yet."""

    def get(self, session_id: str) -> EditorSession | None:
        """A session, if it is open."""
        return self._sessions.get(session_id)

    async def aclose(self) -> None:
        """Close what is open."""
        for one in [*self._sessions]:
            await self.put_aside(one)

    async def opened(
        self, session_id: str, folder: Path | None = None, servers: EditorServers | None = None
    ) -> EditorSession:
        """The session, opened again if it was put aside."""
        opened = self._sessions.get(session_id)
        return opened or await self.open(folder or self._folders.get(session_id), session_id, servers)

    async def open(
        self, folder: Path | None, session_id: str | None, servers: EditorServers | None
    ) -> EditorSession:
        """A session in a folder, new or an earlier one; another one that is open there is put aside."""
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
        opened = EditorSession(session, loaded, where, SessionTranslator(session.app), left_out)
        self._sessions[session.id], self._folders[session.id] = opened, where
        self._servers[session.id] = servers
        task = asyncio.ensure_future(self._announce(opened))
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)
        return opened

    async def put_aside(self, session_id: str) -> None:
        """Close a session, if it is open: all of it is stored."""
        opened = self._sessions.pop(session_id, None)
        if opened is not None:
            await opened.session.close()

    async def _announce(self, opened: EditorSession) -> None:
        """Tell the editor which commands there are, and what it should know of the configuration."""
        await asyncio.sleep(_ANNOUNCE_S)
        if not self._has(opened):
            return
        await self._list_commands(opened)
        told = [text(notice.key, **notice.values) for notice in opened.loaded.notices]
        told += [text("mcp.skipped", name=name, reason=why) for name, why in opened.left_out.items()]
        for line in told:
            shown = helpers.update_agent_thought_text(f"{line}\n")
            await self._editor.session_update(opened.session.id, shown)
        servers = opened.session.app.mcp
        if servers is not None:
            await servers.ready()
            if self._has(opened) and any(one.prompts for one in servers.reports()):
                await self._list_commands(opened)

    def _has(self, opened: EditorSession) -> bool:
        """Whether it is still open: it may be put aside at any time."""
        return any(one is opened for one in self._sessions.values())

    async def _list_commands(self, opened: EditorSession) -> None:
        commands = helpers.update_available_commands(available_commands(opened.session.client))
        await self._editor.session_update(opened.session.id, commands)

    def _unsaved(self, session_id: Callable[[], str]) -> Unsaved:
        async def read(path: Path) -> str | None:
            """The file as the editor has it; None if it can't say."""
            try:
                answer = await asyncio.wait_for(
                    self._editor.read_text_file(session_id=session_id(), path=str(path)), _READ_S
                )
            except (acp.RequestError, TimeoutError):
                return None
            return answer.content

        return read
