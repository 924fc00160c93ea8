"""`duckflow acp` as a process, and an editor that drives it with the protocol's own client classes."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
from acp import schema
from acp.utils import request_model

from fakes import warm
from fakes.engine import write_script

PATIENCE_S = 120.0
"""Longest wait, in seconds: without it, a failing test would hang."""


class Editor:
    """Editor that keeps all updates and answers questions as the test says."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.updates: list[Any] = []
        self.asked: list[Any] = []
        self.buffers: dict[str, str] = {}
        self.when_asked: Callable[[], Any] | None = None

    def on_connect(self, conn: Any) -> None:
        """Nothing to keep."""

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.updates.append(update)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **_: Any) -> Any:
        self.asked.append((tool_call, options))
        if self.when_asked is not None:
            await self.when_asked()
        wish = self.answers.pop(0)
        outcome = (
            schema.DeniedOutcome(outcome="cancelled")
            if wish == "cancelled"
            else schema.AllowedOutcome(outcome="selected", option_id=wish)
        )
        return schema.RequestPermissionResponse(outcome=outcome)

    async def read_text_file(self, session_id: str, path: str, **_: Any) -> Any:
        if path not in self.buffers:
            raise acp.RequestError.resource_not_found(path)
        return schema.ReadTextFileResponse(content=self.buffers[path])

    def of(self, kind: type) -> list[Any]:
        return [update for update in self.updates if isinstance(update, kind)]

    @property
    def said(self) -> str:
        return "".join(one.content.text for one in self.of(schema.AgentMessageChunk))


async def streams(process: subprocess.Popen[Any]) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Messages that the program writes and reads."""
    loop, reader = asyncio.get_running_loop(), asyncio.StreamReader(limit=50_000_000)
    protocol = asyncio.StreamReaderProtocol(reader)
    await loop.connect_read_pipe(lambda: protocol, process.stdout)
    transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, process.stdin)
    return reader, asyncio.StreamWriter(transport, flow, None, loop)


@asynccontextmanager
async def served(
    editor: Editor,
    folder: Path,
    *answers: str | dict[str, Any],
    reads: bool = False,
    mode: str = "ask",
    model: str = "",
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[tuple[Any, schema.InitializeResponse]]:
    """The program, greeted by the editor."""
    script = write_script(folder.parent / "script.jsonl", answers)
    chosen = model or f"scripted:{script}"
    command = [sys.executable, "-m", "duckflow", "acp", "--model", chosen, "--mode", mode]
    quiet = {"DUCKFLOW_CHECKS_AFTER_EDIT": "false", "DUCKFLOW_CHECKS_BEFORE_VERDICT": "false"}
    around = {**os.environ, **quiet, **(env or {})}
    with warm.start(command, env=around, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        reader, writer = await streams(process)
        agent = acp.connect_to_agent(editor, writer, reader)
        try:
            can = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=reads))
            yield agent, await agent.initialize(acp.PROTOCOL_VERSION, client_capabilities=can)
        finally:
            await agent.close()
            writer.close()
            try:
                await asyncio.to_thread(process.wait, PATIENCE_S)
            finally:
                process.kill()


def says(words: str) -> list[Any]:
    return [acp.text_block(words)]


async def until(met: Callable[[], object]) -> None:
    while not met():
        await asyncio.sleep(0.01)


async def delete(agent: Any, session_id: str) -> None:
    """Delete a session; the package's client class does not have this request yet."""
    wanted = schema.DeleteSessionRequest(session_id=session_id)
    await request_model(agent._conn, "session/delete", wanted, schema.DeleteSessionResponse)
