"""`duckflow acp`: one process for an editor and all of its sessions (M6)."""

import asyncio
import os
import sys
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import acp
from acp import helpers, schema
from acp.stdio import stdio_streams
from pydantic import BaseModel

from duckflow.api import Answer, OpenSession, Question, Work, earlier_sessions
from duckflow.cli.editors.connection import EditorConnection
from duckflow.cli.editors.message import EditorMessage, read_message
from duckflow.cli.editors.options import find_effort, find_mode, modes_of, options_of
from duckflow.cli.editors.outcomes import stop_after_error, stop_at_question, tokens_of, turn_usage
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
from duckflow.domain.commands import AnswerInWords, hash_of
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import (
    ApprovalRequested,
    ConsultationRequested,
    ErrorReported,
    StoredEvent,
    UsageReported,
)
from duckflow.i18n.answers import read_answer
from duckflow.ui.commands.table import TypedCommand, find_command, find_custom, read_command
from duckflow.ui.views.events import error_text

_BUFFER_BYTES = 50 * 1024 * 1024
_INVALID, _FAILED = -32602, -32603
"""JSON-RPC's codes for requests that can't be carried out as they are, and for those that failed."""


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
        connection = EditorConnection(agent, writer, reader)
        agent.connect(connection)
        await connection.serve()
    finally:
        await agent.aclose()


class EditorAgent:
    """Answers an editor's requests. The `acp` package calls the methods by their names."""

    def __init__(self, flags: Mapping[str, object], *, trust: bool) -> None:
        self._flags = flags
        self._trust = trust

    def connect(self, editor: EditorConnection) -> None:
        """Keep the connection to the editor."""
        self._editor = editor
        self._sessions = EditorSessions(editor, self._flags, trust=self._trust)

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
                prompt_capabilities=schema.PromptCapabilities(image=True, embedded_context=True),
                session_capabilities=schema.SessionCapabilities(
                    list=schema.SessionListCapabilities(),
                    delete=schema.SessionDeleteCapabilities(),
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
        told = opened.session
        return schema.NewSessionResponse(
            session_id=told.id, modes=modes_of(told), config_options=options_of(told)
        )

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
        opened.told_usage = None
        await self._sessions.tell_usage(opened)
        told = opened.session
        return schema.LoadSessionResponse(modes=modes_of(told), config_options=options_of(told))

    async def resume_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ResumeSessionResponse:
        """Open an earlier session that the editor already shows."""
        with _told():
            opened = await self._sessions.opened(session_id, Path(cwd), mcp_servers)
        told = opened.session
        return schema.ResumeSessionResponse(modes=modes_of(told), config_options=options_of(told))

    async def fork_session(
        self, session_id: str, cwd: str, mcp_servers: EditorServers | None = None, **_: object
    ) -> schema.ForkSessionResponse:
        """Open a new session that begins like this one (L8)."""
        with _told():
            opened = await self._sessions.opened(session_id, Path(cwd))
            new = await self._sessions.open(Path(cwd), opened.session.fork(), mcp_servers)
        told = new.session
        return schema.ForkSessionResponse(
            session_id=told.id, modes=modes_of(told), config_options=options_of(told)
        )

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

    async def delete_session(self, session_id: str, **_: object) -> None:
        """Delete a session with all its files; nothing happens if it does not exist."""
        with _told():
            await self._sessions.delete(session_id)

    async def set_session_mode(self, session_id: str, mode_id: str, **_: object) -> None:
        """Change the mode."""
        with _told():
            opened = await self._sessions.opened(session_id)
            opened.told_mode = mode = find_mode(mode_id)
            opened.session.set_mode(mode)

    async def set_config_option(
        self, session_id: str, config_id: str, value: object, **_: object
    ) -> schema.SetSessionConfigOptionResponse:
        """Change the model, the mode or the thinking effort."""
        with _told():
            opened = await self._sessions.opened(session_id)
            session = opened.session
            match config_id:
                case "model" if session.client.busy:
                    self._sessions.keep(self._change_model(opened, str(value)))
                case "model":
                    await session.set_model(str(value))
                case "mode":
                    opened.told_mode = mode = find_mode(value)
                    session.set_mode(mode)
                case "effort":
                    session.set_effort(find_effort(value))
                case _:
                    names = ", ".join(option.id for option in options_of(session))
                    raise UsageError("editors.no_option", option=config_id, options=names)
            opened.told_options = options_of(session)
        return schema.SetSessionConfigOptionResponse(config_options=opened.told_options)

    async def cancel(self, session_id: str, **_: object) -> None:
        """Stop the running request."""
        opened = self._sessions.get(session_id)
        if opened is not None:
            opened.cancelled.set()
            opened.session.cancel()

    async def prompt(self, session_id: str, prompt: Iterable[Any], **_: object) -> schema.PromptResponse:
        """Work on a message until the work ends or waits for the user."""
        with _told():
            opened = await self._sessions.opened(session_id)
            message = read_message(prompt, opened.root)
            if not message.text and not message.pictures:
                raise UsageError("session.empty")
            typed = None if message.pictures else _read_own(opened.session, message.text)
            if typed is not None:
                await self._say(session_id, await run_command(opened.session.client, typed))
                await self._sessions.tell_options(opened)
                return schema.PromptResponse(stop_reason="end_turn")
            if opened.turn is not None and _pass_on(opened.session, message):
                return schema.PromptResponse(stop_reason=await asyncio.shield(opened.turn))
            before = tokens_of(opened.session.state)
            opened.cancelled.clear()
            opened.turn = turn = asyncio.get_running_loop().create_future()
            stop: schema.StopReason = "end_turn"
            try:
                stop = await self._follow(opened, _begin(opened.session, message))
            finally:
                opened.turn = None
                turn.set_result(stop)  # for messages that were sent during the turn (C6)
        if self._sessions.get(session_id) is not opened:
            return schema.PromptResponse(stop_reason="cancelled")
        await self._sessions.tell_usage(opened)
        used = turn_usage(before, tokens_of(opened.session.state))
        return schema.PromptResponse(stop_reason=stop, usage=used if used.total_tokens else None)

    async def _follow(self, opened: EditorSession, work: Work) -> schema.StopReason:
        """Show the work on a message, and return why it stopped. RequestError if the model failed."""
        session, session_id = opened.session, opened.session.id
        failure: ErrorReported | None = None
        withheld: Sequence[Any] = ()
        async for update in work:
            shown = [*opened.tell(update)]
            if shown:
                await self._show(session_id, *withheld)
                withheld = ()
            match update:
                case StoredEvent(event=ErrorReported(notice=False) as failure):
                    withheld, shown = shown, []  # an error that ends the work is the answer to the request
                case StoredEvent(event=UsageReported()):
                    await self._sessions.tell_usage(opened)
                case (
                    StoredEvent(event=ApprovalRequested(approval=asked))
                    | StoredEvent(event=ConsultationRequested(consultation=asked))
                ) if asked == session.question:
                    answer = await self._ask(opened, asked)
                    if answer is not None and asked == session.question:
                        session.answer(asked, answer)
                case _:
                    pass
            await self._show(session_id, *shown)
        if work.outcome == "interrupted" or opened.cancelled.is_set():
            return "cancelled"
        if work.outcome == "provider_error" and failure is not None:
            stop = stop_after_error(failure.key)
            if stop is None:
                message = without_secrets(error_text(failure))
                raise acp.RequestError(_FAILED, message, {"key": failure.key})
            await self._show(session_id, *withheld)
            return stop
        await self._show(session_id, *withheld)
        return stop_at_question(session.state.consultation)

    async def _show(self, session_id: str, *updates: BaseModel) -> None:
        for update in updates:
            await self._editor.session_update(session_id, update)

    async def _change_model(self, opened: EditorSession, name: str) -> None:
        """Change the model after the current work, and say so if that fails."""
        session_id = opened.session.id
        try:
            await opened.session.set_model(name)
        except UserError as error:
            await self._say(session_id, without_secrets(str(error)) + "\n\n")

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
        if said:
            await self._editor.session_update(session_id, helpers.update_agent_message_text(said))


@contextmanager
def _told() -> Generator[None]:
    """Translate a UserError to an error of the protocol."""
    try:
        yield
    except UserError as error:
        raise acp.RequestError(_INVALID, without_secrets(str(error)), {"key": error.key}) from error


def _read_own(session: OpenSession, said: str) -> TypedCommand | None:
    """Return the text as one of Duckflow's commands that editors do not have themselves, or None."""
    if find_custom(said, session.app.extensions.commands) is not None:
        return None
    typed = read_command(said)
    known = find_command(typed.name) if typed is not None else None
    return typed if known is not None and known.name not in LEFT_OUT else None


def _pass_on(session: OpenSession, message: EditorMessage) -> bool:
    """Add a message to the current turn (C6). Return False if that is all but over."""
    asked, said = session.question, message.text
    if not session.client.busy and asked is None:
        return False
    answers = asked == session.state.consultation or read_answer(said) is not None
    if asked is not None and answers and not message.pictures:
        session.client.send(AnswerInWords(question_hash=hash_of(asked), text=said))
    else:
        session.send(said, message.pictures)
    return True


def _begin(session: OpenSession, message: EditorMessage) -> Work:
    """Begin to work on a clear answer to the open question, or on a message."""
    asked, said = session.question, message.text
    if message.pictures or asked is None:
        return session.start(said, message.pictures)
    if asked == session.state.consultation or read_answer(said) is not None:
        session.answer(asked, said)
        return session.go_on()
    return session.start(said)
