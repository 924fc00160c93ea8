"""`duckflow acp`: one process for an editor and all of its sessions (SPEC M6).

A folder is open in one session at a time. If the editor wants another one there, that one is opened and the
other put aside: all of it is stored, and it is opened again when the editor comes back to it.
"""

import asyncio
import os
import sys
from collections.abc import Callable, Coroutine, Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import acp
from acp import helpers, schema
from acp.stdio import stdio_streams

from duckflow import __version__
from duckflow.api import Answer, OpenSession, Question, Work, earlier_sessions
from duckflow.cli.editors.commands import LEFT_OUT, available_commands, run_command
from duckflow.cli.editors.mcp_servers import EditorServers, with_servers
from duckflow.cli.editors.questions import permission_of, question_text
from duckflow.cli.editors.updates import SessionTranslator
from duckflow.cli.log_file import open_log_file
from duckflow.cli.secrets import without_secrets
from duckflow.config.loading import Loaded, load
from duckflow.config.trust import trust_state
from duckflow.domain.errors import UserError
from duckflow.domain.events import ApprovalRequested, ConsultationRequested, Recorded
from duckflow.domain.modes import MODES, Mode
from duckflow.domain.reduce.rewind import present
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.loops.undo.rewind import fork
from duckflow.ui.commands.table import (
    find_command,
    find_custom,
    read_command,
)

_ANNOUNCE_S = 0.1
"""After a session's id was sent: editors drop what is told of a session they do not know yet."""
_READ_S = 10.0
_BUFFER_BYTES = 50 * 1024 * 1024


def serve(flags: Mapping[str, object], *, trust: bool) -> None:
    """Speak with the editor until it closes the connection."""
    asyncio.run(_serve(flags, trust=trust))


async def _serve(flags: Mapping[str, object], *, trust: bool) -> None:
    open_log_file()
    # Standard output is the protocol's alone: whatever else is printed, by whomever, goes to standard error.
    protocol = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    printed, sys.stdout = sys.stdout, protocol
    reader, writer = await stdio_streams(limit=_BUFFER_BYTES)
    sys.stdout = printed
    agent = EditorAgent(flags, trust=trust)
    try:
        await acp.run_agent(cast("acp.Agent", agent), writer, reader, use_unstable_protocol=True)
    finally:
        await agent.aclose()


@dataclass
class EditorSession:
    """A session that an editor has open."""

    session: OpenSession
    loaded: Loaded
    root: Path
    tell: SessionTranslator
    left_out: Mapping[str, str]
    """MCP servers of the editor's that can't be used, and why."""
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)
    busy: bool = False


class EditorAgent:
    """Answers an editor's requests, by the names the protocol's package has for them."""

    def __init__(self, flags: Mapping[str, object], *, trust: bool) -> None:
        self._flags = flags
        self._trust = trust
        self._sessions: dict[str, EditorSession] = {}
        self._folders: dict[str, Path] = {}
        self._servers: dict[str, EditorServers] = {}
        self._reads = False
        self._behind: set[asyncio.Task[None]] = set()

    def on_connect(self, conn: acp.Client) -> None:
        """The editor, to talk to."""
        self._editor = conn

    async def aclose(self) -> None:
        """Close what is open."""
        for one in [*self._sessions]:
            await self._put_aside(one)

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: object
    ) -> schema.InitializeResponse:
        """Say what can be done here, and learn what the editor can do."""
        files = client_capabilities.fs if client_capabilities else None
        self._reads = bool(files and files.read_text_file)
        speaks_mcp = find_spec("mcp") is not None
        return schema.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_info=schema.Implementation(name="duckflow", title="Duckflow", version=__version__),
            agent_capabilities=schema.AgentCapabilities(
                load_session=True,
                mcp_capabilities=schema.McpCapabilities(http=speaks_mcp, sse=speaks_mcp),
                prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    fork=schema.SessionForkCapabilities(),
                    resume=schema.SessionResumeCapabilities(),
                    close=schema.SessionCloseCapabilities(),
                ),
            ),
        )

    async def authenticate(self, method_id: str, **_: object) -> None:
        """Nothing to do: keys come from the environment."""
        del method_id

    async def new_session(
        self, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.NewSessionResponse:
        """A new session in a folder."""
        with _told():
            opened = await self._open(Path(cwd), None, mcp_servers)
        return schema.NewSessionResponse(session_id=opened.session.id, modes=_modes(opened))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.LoadSessionResponse:
        """An earlier session, with all that was said and done in it."""
        with _told():
            opened = await self._opened(session_id, Path(cwd), mcp_servers)
        for update in opened.tell.replay(present(opened.session.app.log.load(session_id))):
            await self._editor.session_update(session_id, update)
        if opened.session.question is not None:
            await self._say(session_id, question_text(opened.session.question))
        return schema.LoadSessionResponse(modes=_modes(opened))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ResumeSessionResponse:
        """An earlier session, of which the editor knows all."""
        with _told():
            opened = await self._opened(session_id, Path(cwd), mcp_servers)
        return schema.ResumeSessionResponse(modes=_modes(opened))

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ForkSessionResponse:
        """A new session that begins as this one is (SPEC L8)."""
        with _told():
            opened = await self._opened(session_id, Path(cwd))
            new = await self._open(Path(cwd), fork(opened.session.app.log, session_id), mcp_servers)
        return schema.ForkSessionResponse(session_id=new.session.id, modes=_modes(new))

    async def list_sessions(self, cwd: str | None = None, **_: object) -> schema.ListSessionsResponse:
        """The sessions there are, the one used last first."""
        with _told():
            found = earlier_sessions(cwd)
        return schema.ListSessionsResponse(
            sessions=[
                schema.SessionInfo(
                    session_id=one.id, cwd=one.workspace, title=one.title, updated_at=one.updated.isoformat()
                )
                for one in found
            ]
        )

    async def close_session(self, session_id: str, **_: object) -> None:
        """Stop what runs in a session, and give its folder free."""
        await self._put_aside(session_id)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: object) -> None:
        """Ask more, or less, from now on."""
        with _told():
            opened = await self._opened(session_id)
            mode: Mode | None = next((mode for mode in MODES if mode == mode_id), None)
            if mode is None:
                raise UserError("mode.unknown", mode=mode_id, modes=", ".join(MODES))
            opened.session.set_mode(mode)

    async def cancel(self, session_id: str, **_: object) -> None:
        """Stop the request that runs."""
        opened = self._sessions.get(session_id)
        if opened is not None:
            opened.cancelled.set()
            opened.session.cancel()

    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: object) -> schema.PromptResponse:
        """Work on a message until it is done or needs the user again."""
        said = _words(prompt)
        with _told():
            opened = await self._opened(session_id)
            own = find_custom(said, opened.session.app.extensions.commands)
            typed = read_command(said) if own is None else None
            known = find_command(typed.name) if typed is not None else None
            if typed is not None and known is not None and known.name not in LEFT_OUT:
                mode = opened.session.state.mode
                await self._say(session_id, await run_command(opened.session.app, opened.loaded, typed))
                if opened.session.state.mode != mode:
                    await self._tell_mode(opened)
                return schema.PromptResponse(stop_reason="end_turn")
            opened.cancelled.clear()
            opened.busy = True
            try:
                outcome = await self._follow(opened, _begin(opened.session, said))
            finally:
                opened.busy = False
        stopped = outcome == "interrupted" or opened.cancelled.is_set()
        return schema.PromptResponse(stop_reason="cancelled" if stopped else "end_turn")

    async def _follow(self, opened: EditorSession, work: Work) -> str | None:
        """Tell the editor what happens, and let it ask what is asked."""
        session = opened.session
        async for update in work:
            for told in opened.tell(update):
                await self._editor.session_update(session.id, told)
            match update:
                case (
                    Recorded(event=ApprovalRequested(approval=asked))
                    | Recorded(event=ConsultationRequested(consultation=asked))
                ) if asked == session.question:
                    answer = await self._ask(opened, asked)
                    if answer is not None and asked == session.question:
                        session.answer(asked, answer)
                case _:
                    pass
        return work.outcome

    async def _ask(self, opened: EditorSession, question: Question) -> Answer | None:
        """The user's answer; None if it was given elsewhere or cancelled, or the editor can't ask."""
        session_id = opened.session.id
        asked = await permission_of(opened.session, question)
        asking = asyncio.ensure_future(
            self._editor.request_permission(
                session_id=session_id, tool_call=asked.call, options=asked.options
            )
        )
        elsewhere = opened.session.answered_elsewhere
        others = [asyncio.ensure_future(one.wait()) for one in (opened.cancelled, elsewhere)]
        try:
            await asyncio.wait({asking, *others}, return_when=asyncio.FIRST_COMPLETED)
            if elsewhere.is_set() or not asking.done():
                return None
            outcome = asking.result().outcome
        except acp.RequestError:
            await self._say(session_id, question_text(question))
            return None
        finally:
            for waiting in (asking, *others):
                waiting.cancel()
        if isinstance(outcome, schema.AllowedOutcome):
            return asked.answers.get(outcome.option_id)
        opened.cancelled.set()
        return None

    async def _opened(
        self, session_id: str, folder: Path | None = None, servers: EditorServers | None = None
    ) -> EditorSession:
        """The session, opened again if it was put aside."""
        opened = self._sessions.get(session_id)
        return opened or await self._open(folder or self._folders.get(session_id), session_id, servers)

    async def _open(
        self, folder: Path | None, session_id: str | None, servers: EditorServers | None
    ) -> EditorSession:
        where = (folder or Path()).resolve()
        for name, other in [*self._sessions.items()]:
            if other.root == where and not other.busy:
                await self._put_aside(name)
        trust = trust_state(where)
        trusted = self._trust or trust.status == "trusted"
        digest = None if self._trust else trust.digest
        loaded = load(where, trusted=trusted, digest=digest, flags=self._flags)
        servers = self._servers.get(session_id or "", ()) if servers is None else servers
        loaded, left_out = with_servers(loaded, servers)
        session = OpenSession(
            where,
            resume=session_id,
            mode=cast("Any", self._flags.get("mode")),
            settings=loaded,
            attended=True,
            unsaved=self._unsaved(lambda: session.id) if self._reads else None,
        )
        await session.open()
        opened = EditorSession(session, loaded, where, SessionTranslator(session.app), left_out)
        self._sessions[session.id], self._folders[session.id] = opened, where
        self._servers[session.id] = servers
        loop = asyncio.get_running_loop()
        loop.call_later(_ANNOUNCE_S, lambda: self._later(self._announce(opened)))
        return opened

    async def _put_aside(self, session_id: str) -> None:
        opened = self._sessions.pop(session_id, None)
        if opened is not None:
            await opened.session.close()

    def _later(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.ensure_future(work)
        self._behind.add(task)
        task.add_done_callback(self._behind.discard)

    async def _announce(self, opened: EditorSession) -> None:
        """Tell the editor which commands there are, and what it should know of the configuration."""
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
        commands = helpers.update_available_commands(available_commands(opened.session.app))
        await self._editor.session_update(opened.session.id, commands)

    async def _tell_mode(self, opened: EditorSession) -> None:
        update = helpers.update_current_mode(opened.session.state.mode)
        await self._editor.session_update(opened.session.id, update)

    async def _say(self, session_id: str, said: str) -> None:
        await self._editor.session_update(session_id, helpers.update_agent_message_text(said))

    def _unsaved(self, session_id: Callable[[], str]) -> Callable[[Path], Any]:
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


@contextmanager
def _told() -> Generator[None]:
    """What the user can mend is an error with a sentence."""
    try:
        yield
    except UserError as error:
        message = without_secrets(text(error.key, **error.values))
        raise acp.RequestError(-32602, message, {"key": error.key}) from error


def _modes(opened: EditorSession) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=one, name=one, description=text(f"status.means.{one}")) for one in MODES]
    return schema.SessionModeState(current_mode_id=opened.session.state.mode, available_modes=modes)


def _begin(session: OpenSession, said: str) -> Work:
    """Work on what was said: a clear answer to the open question, or a message."""
    asked = session.question
    if asked is not None and (asked == session.state.consultation or read_answer(said) is not None):
        session.answer(asked, said)
        return session.go_on()
    return session.start(said)


def _words(prompt: Iterable[Any]) -> str:
    """A message as text: what was written, files by their names, pieces of them as they were given."""
    parts: list[str] = []
    for block in prompt:
        match block:
            case schema.TextContentBlock():
                parts.append(block.text)
            case schema.ResourceContentBlock():
                parts.append(f"@{_path(block.uri)}")
            case schema.EmbeddedResourceContentBlock(resource=schema.TextResourceContents() as given):
                parts.append(f"\n\n{_path(given.uri)}:\n```\n{given.text}\n```\n")
            case _:
                pass
    return "".join(parts).strip()


def _path(uri: str) -> str:
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else uri
