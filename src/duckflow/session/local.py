"""Client of a session that this process has open."""

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from duckflow.config.loading import LoadedSettings, rows
from duckflow.domain.commands import SessionCommand
from duckflow.domain.errors import ProviderError, ToolError
from duckflow.domain.extensions import Extensions, ServerReport
from duckflow.domain.model import Picture, PromptUse
from duckflow.domain.session_client import (
    EarlierSession,
    EngineStatus,
    PastMessage,
    Permission,
    SessionUpdate,
    StatusChanged,
)
from duckflow.domain.state import AgentState
from duckflow.domain.work.memory import Memory
from duckflow.i18n.catalogue import text
from duckflow.llm.default_model import list_models
from duckflow.llm.endpoints import full_name
from duckflow.loops.thinking.pictures import keep_pictures
from duckflow.loops.undo.rewind import past_messages
from duckflow.safety.files.listing import SKIPPED
from duckflow.session.channel import Receipt, UpdateQueue
from duckflow.session.host import SessionHost
from duckflow.store.memory import Memories
from duckflow.store.sessions import Sessions

_MOST_FILES = 5_000
_DEPTH = 8
_LONGEST_BRANCH = 40


class LocalSession:
    """A session of this process, as one user interface sees it."""

    def __init__(self, host: SessionHost, loaded: LoadedSettings) -> None:
        self.host = host
        self._app = host.app
        self._loaded = loaded
        self._files: Sequence[str] = ()
        self._listed_models: Sequence[str] = ()
        self.extensions: Extensions = host.app.extensions
        self.status = EngineStatus(all_vitals=loaded.settings.ui.vitals == "full")

    @property
    def state(self) -> AgentState:
        """Newest state."""
        return self.host.state

    @property
    def busy(self) -> bool:
        """True while a command is being carried out."""
        return self.host.busy

    def send(self, command: SessionCommand) -> Receipt:
        """Send a command, to be carried out at once or in its turn."""
        return self.host.send(command)

    @property
    def waiting(self) -> Sequence[str]:
        """Lines that were sent during the work and that it has not taken yet, oldest first."""
        return self.host.waiting_lines()

    def take_back(self) -> Sequence[str]:
        """Remove and return the lines that wait."""
        return self.host.take_back()

    def updates(self) -> AsyncIterator[SessionUpdate]:
        """Return all updates from now on."""
        updates = UpdateQueue()
        self.host.subscribe(updates)
        return updates

    async def keep_ready(self) -> None:
        """Prepare sandbox, files and model; refresh the files and the window whenever work ends."""
        updates = self.updates()
        await self._learn_branch()
        self._set_status(self.status._replace(sandbox=(await self._app.shell.sandbox()).level))
        await self._list_files()
        if self._app.mcp is not None:
            await self._app.mcp.ready()
        await self._app.model.warm()
        await self._learn_window()
        async for update in updates:
            if isinstance(update, StatusChanged) and not update.busy and not self.busy:
                await self._learn_branch()
                await self._list_files()
                await self._learn_window()

    async def proposal(self) -> str | None:
        """Return the text that the open approval would write or run; None if the user can't edit it."""
        return await self._app.chat.proposal()

    def keep_pictures(self, pictures: Sequence[bytes]) -> tuple[Picture, ...]:
        """Keep pasted pictures for the next message."""
        return keep_pictures(pictures, self.state.session_id, self._app.kept)

    async def diff(self, *, session: bool = False) -> str:
        """Return the changes since the last request, or the session, began."""
        return await self._app.undoing.diff(session=session)

    async def context(self) -> PromptUse:
        """Return the sizes of the parts of the current prompt."""
        return await self._app.model.preview(self.state)

    def messages(self) -> Sequence[PastMessage]:
        """Return the user's messages, oldest first."""
        return past_messages(self._app.log.load(self.state.session_id))

    def files(self) -> Sequence[str]:
        """Return names that can follow an @: files as last listed, and resources of MCP servers."""
        return [*self._files, *(f"{one.name}:{uri}" for one in self.servers() for uri in one.resources)]

    def models(self) -> Sequence[str]:
        """Return the current model, those of settings and environment, and those that need no key."""
        llm = self._loaded.settings.llm
        named = (self.state.model, llm.model, llm.creative, llm.fast, llm.evaluator)
        names = [name for name in (*named, *self._listed_models, "embedded", "relay") if name]
        return list(dict.fromkeys(full_name(name, llm.embedded.full_name) for name in names))

    async def list_models(self) -> None:
        """Look for models in the environment, for `models`."""
        self._listed_models = await list_models(os.environ)

    def sessions(self) -> Sequence[EarlierSession]:
        """Return earlier sessions of this folder, the last one first."""
        listed = Sessions(self._app.log.database).listed(str(self._app.workspace.root))
        return [EarlierSession(one.id, one.title, one.updated) for one in listed if one.title]

    def conversations(self) -> Mapping[str, str]:
        """Return what was said in each session of this folder, by session id."""
        return Sessions(self._app.log.database).said(str(self._app.workspace.root))

    def search(self, words: str) -> Sequence[tuple[EarlierSession, str]]:
        """Return sessions of this folder in which someone said these words, each with that text."""
        found = Sessions(self._app.log.database).search(words, str(self._app.workspace.root))
        return [(EarlierSession(one.id, one.title, one.updated), said) for one, said in found]

    def memories(self) -> Sequence[Memory]:
        """Return the memories for this folder, the newest first."""
        return Memories(self._app.log.database).listed(str(self._app.workspace.root))

    def permissions(self) -> Sequence[Permission]:
        """Return the lasting permissions, then those of this session."""
        kept = self._app.grants.listed()
        lasting = [Permission(one.kind, "here" if one.folder else "everywhere", one.since) for one in kept]
        known = [one.kind for one in kept]
        return [*lasting, *(Permission(kind) for kind in self.state.allowed if kind not in known)]

    def servers(self) -> Sequence[ServerReport]:
        """Return the MCP servers of the settings, with their status."""
        return self._app.mcp.reports() if self._app.mcp is not None else ()

    def settings(self, *, every: bool = False) -> Sequence[str]:
        """Return a line for every setting that differs from its default, or for every setting."""
        return [
            f"{row.key} = {row.value}  # {text(f'config.source_{row.source.kind}', where=row.source.where)}"
            for row in rows(self._loaded)
            if every or row.source.kind != "default"
        ]

    async def _list_files(self) -> None:
        try:
            listing = await asyncio.to_thread(
                self._app.workspace.list, ".", depth=_DEPTH, limit=_MOST_FILES, skip=SKIPPED
            )
        except ToolError:
            return
        self._files = [entry.path for entry in listing.entries if entry.kind == "file"]

    async def _learn_window(self) -> None:
        with suppress(ProviderError):  # the next message fails with the same error, and reports it
            self._set_status(self.status._replace(window=(await self._app.model.traits()).window))

    async def _learn_branch(self) -> None:
        branch = await asyncio.to_thread(_branch_of, self._app.workspace.root)
        self._set_status(self.status._replace(branch=branch))

    def _set_status(self, status: EngineStatus) -> None:
        if status != self.status:
            self.status = status
            self.host.show_status()


def _branch_of(root: Path) -> str:
    """Return the current git branch, or the beginning of the commit; empty outside a repository. Blocking."""
    with suppress(OSError, ValueError):
        for folder in (root, *root.parents):
            place = folder / ".git"
            if place.is_file():  # a worktree or a submodule
                place = folder / place.read_text("utf-8").removeprefix("gitdir:").strip()
            if place.is_dir():
                head = (place / "HEAD").read_text("utf-8").strip()
                return head.removeprefix("ref: refs/heads/")[:_LONGEST_BRANCH] if "/" in head else head[:7]
    return ""
