"""`duckflow acp`: one process for an editor and all of its sessions (M6)."""

import asyncio
import os
import sys
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast
from urllib.parse import unquote, urlsplit

import acp
from acp import helpers, schema
from acp.stdio import stdio_streams

from duckflow.api import Answer, OpenSession, Question, Work, earlier_sessions
from duckflow.cli.editors.questions import permission_of, question_text
from duckflow.cli.editors.sessions import (
    LEFT_OUT,
    EditorServers,
    EditorSession,
    EditorSessions,
    run_command,
)
from duckflow.cli.log_file import open_log_file
from duckflow.cli.secrets import without_secrets
from duckflow.config.version import __version__
from duckflow.domain.errors import UserError
from duckflow.domain.events import ApprovalRequested, ConsultationRequested, StoredEvent
from duckflow.domain.modes import MODES, Mode
from duckflow.i18n.answers import read_answer
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import find_command, find_custom, read_command

_BUFFER_BYTES = 50 * 1024 * 1024


async def serve(flags: Mapping[str, object], *, trust: bool) -> None:
    """Serve the editor until it closes the connection."""
    open_log_file()
    # Standard output is for the protocol alone: all other output goes to standard error.
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


class EditorAgent:
    """Answers an editor's requests. The `acp` package calls the methods by their names."""

    def __init__(self, flags: Mapping[str, object], *, trust: bool) -> None:
        self._flags = flags
        self._trust = trust

    def on_connect(self, conn: acp.Client) -> None:
        """Keep the connection to the editor."""
        self._editor = conn
        self._sessions = EditorSessions(conn, self._flags, trust=self._trust)

    async def aclose(self) -> None:
        """Close all sessions."""
        await self._sessions.aclose()

    async def initialize(
        self, protocol_version: int, client_capabilities: schema.ClientCapabilities | None = None, **_: object
    ) -> schema.InitializeResponse:
        """Exchange capabilities with the editor."""
        files = client_capabilities.fs if client_capabilities else None
        self._sessions.reads = bool(files and files.read_text_file)
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
        """Open a new session in a folder."""
        with _told():
            opened = await self._sessions.open(Path(cwd), None, mcp_servers)
        return schema.NewSessionResponse(session_id=opened.session.id, modes=_modes(opened))

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.LoadSessionResponse:
        """Open an earlier session, and send all of its messages to the editor."""
        with _told():
            opened = await self._sessions.opened(session_id, Path(cwd), mcp_servers)
        for update in opened.tell.replay(opened.session.events()):
            await self._editor.session_update(session_id, update)
        if opened.session.question is not None:
            await self._say(session_id, question_text(opened.session.question))
        return schema.LoadSessionResponse(modes=_modes(opened))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ResumeSessionResponse:
        """Open an earlier session that the editor already shows."""
        with _told():
            opened = await self._sessions.opened(session_id, Path(cwd), mcp_servers)
        return schema.ResumeSessionResponse(modes=_modes(opened))

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ForkSessionResponse:
        """Open a new session that begins like this one (L8)."""
        with _told():
            opened = await self._sessions.opened(session_id, Path(cwd))
            new = await self._sessions.open(Path(cwd), opened.session.fork(), mcp_servers)
        return schema.ForkSessionResponse(session_id=new.session.id, modes=_modes(new))

    async def list_sessions(self, cwd: str | None = None, **_: object) -> schema.ListSessionsResponse:
        """List the sessions, the last used one first."""
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
        """Stop the work of a session and close it."""
        await self._sessions.put_aside(session_id)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: object) -> None:
        """Change the mode."""
        with _told():
            opened = await self._sessions.opened(session_id)
            mode: Mode | None = next((mode for mode in MODES if mode == mode_id), None)
            if mode is None:
                raise UserError("mode.unknown", mode=mode_id, modes=", ".join(MODES))
            opened.session.set_mode(mode)

    async def cancel(self, session_id: str, **_: object) -> None:
        """Stop the running request."""
        opened = self._sessions.get(session_id)
        if opened is not None:
            opened.cancelled.set()
            opened.session.cancel()

    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: object) -> schema.PromptResponse:
        """Work on a message until the work ends or waits for the user."""
        said = _words(prompt)
        with _told():
            opened = await self._sessions.opened(session_id)
            own = find_custom(said, opened.session.app.extensions.commands)
            typed = read_command(said) if own is None else None
            known = find_command(typed.name) if typed is not None else None
            if typed is not None and known is not None and known.name not in LEFT_OUT:
                mode = opened.session.state.mode
                await self._say(session_id, await run_command(opened.session.client, typed))
                if opened.session.state.mode != mode:
                    update = helpers.update_current_mode(opened.session.state.mode)
                    await self._editor.session_update(session_id, update)
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
        session = opened.session
        async for update in work:
            for told in opened.tell(update):
                await self._editor.session_update(session.id, told)
            match update:
                case (
                    StoredEvent(event=ApprovalRequested(approval=asked))
                    | StoredEvent(event=ConsultationRequested(consultation=asked))
                ) if asked == session.question:
                    answer = await self._ask(opened, asked)
                    if answer is not None and asked == session.question:
                        session.answer(asked, answer)
                case _:
                    pass
        return work.outcome

    async def _ask(self, opened: EditorSession, question: Question) -> Answer | None:
        """Return the user's answer; None if it was given elsewhere or cancelled, or the editor can't ask."""
        session_id = opened.session.id
        asked = await permission_of(opened.session, question)
        request = self._editor.request_permission(
            session_id=session_id, tool_call=asked.call, options=asked.options
        )
        answered = opened.session.app.session.wait_until(lambda state: state.question != question)
        asking, elsewhere = asyncio.ensure_future(request), asyncio.ensure_future(answered)
        cancelled = asyncio.ensure_future(opened.cancelled.wait())
        try:
            await asyncio.wait({asking, cancelled, elsewhere}, return_when=asyncio.FIRST_COMPLETED)
            if elsewhere.done() or not asking.done():
                return None
            outcome = asking.result().outcome
        except acp.RequestError:
            await self._say(session_id, question_text(question))
            return None
        finally:
            for waiting in (asking, cancelled, elsewhere):
                waiting.cancel()
        if isinstance(outcome, schema.AllowedOutcome):
            return asked.answers.get(outcome.option_id)
        opened.cancelled.set()
        return None

    async def _say(self, session_id: str, said: str) -> None:
        await self._editor.session_update(session_id, helpers.update_agent_message_text(said))


@contextmanager
def _told() -> Generator[None]:
    """Translate a UserError to an error of the protocol."""
    try:
        yield
    except UserError as error:
        message = without_secrets(text(error.key, **error.values))
        raise acp.RequestError(-32602, message, {"key": error.key}) from error


def _modes(opened: EditorSession) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=one, name=one, description=text(f"status.means.{one}")) for one in MODES]
    return schema.SessionModeState(current_mode_id=opened.session.state.mode, available_modes=modes)


def _begin(session: OpenSession, said: str) -> Work:
    """Begin to work on a clear answer to the open question, or on a message."""
    asked = session.question
    if asked is not None and (asked == session.state.consultation or read_answer(said) is not None):
        session.answer(asked, said)
        return session.go_on()
    return session.start(said)


def _words(prompt: Iterable[Any]) -> str:
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
