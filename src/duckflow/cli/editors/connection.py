"""The connection to an editor: JSON-RPC over a pair of streams."""

import asyncio
from typing import Any, cast

import acp
from acp import schema
from acp.agent.router import build_agent_router
from acp.connection import Connection
from acp.meta import AGENT_METHODS, CLIENT_METHODS
from acp.utils import normalize_result, request_model, serialize_params
from pydantic import BaseModel


class EditorConnection:
    """Sends updates and requests to an editor, and passes its requests on to an agent.

    The `acp` package has a class for this, which lacks `session/delete`.
    """

    def __init__(self, agent: object, writer: asyncio.StreamWriter, reader: asyncio.StreamReader) -> None:
        router = build_agent_router(cast("acp.Agent", agent), use_unstable_protocol=True)
        router.route_request(
            AGENT_METHODS["session_delete"],
            schema.DeleteSessionRequest,
            agent,
            "delete_session",
            adapt_result=normalize_result,
        )
        self._connection = Connection(router, writer, reader, listening=False)

    async def serve(self) -> None:
        """Answer the editor's requests until it closes the connection."""
        try:
            await self._connection.main_loop()
        finally:
            await asyncio.shield(self._connection.close())

    async def session_update(self, session_id: str, update: BaseModel) -> None:
        """Show an update of a session."""
        sent = schema.SessionNotification(session_id=session_id, update=cast("Any", update))
        await self._connection.send_notification(CLIENT_METHODS["session_update"], serialize_params(sent))

    async def request_permission(
        self, session_id: str, tool_call: schema.ToolCallUpdate, options: list[schema.PermissionOption]
    ) -> schema.RequestPermissionResponse:
        """Ask the user a question with buttons."""
        asked = schema.RequestPermissionRequest(session_id=session_id, tool_call=tool_call, options=options)
        method = CLIENT_METHODS["session_request_permission"]
        return await request_model(self._connection, method, asked, schema.RequestPermissionResponse)

    async def read_text_file(self, session_id: str, path: str) -> schema.ReadTextFileResponse:
        """Read a file as the editor has it, saved or not."""
        asked = schema.ReadTextFileRequest(session_id=session_id, path=path)
        method = CLIENT_METHODS["fs_read_text_file"]
        return await request_model(self._connection, method, asked, schema.ReadTextFileResponse)
