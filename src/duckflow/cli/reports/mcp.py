"""Tries an MCP server as a session would use it (`duckflow mcp test`)."""

import asyncio
import os
import sys
from contextlib import aclosing, suppress
from pathlib import Path

from duckflow.config.loading import load_as_trusted
from duckflow.config.mcp import McpServer, McpSettings
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.extensions import ServerReport
from duckflow.domain.frozen import replace
from duckflow.tools.mcp.connection import ServerOpener
from duckflow.tools.mcp.servers import McpServers
from duckflow.ui.output.escaping import echo


def tried(name: str, folder: Path, *, trust: bool) -> ServerReport:
    """Connect to a server and report the result."""
    server, opener = _found(name, folder, trust=trust)
    return asyncio.run(_try(name, server, opener))


def signed_in(name: str, folder: Path, *, trust: bool) -> None:
    """Let the user sign in at a server, in a browser on this or another machine."""
    server, opener = _found(name, folder, trust=trust)
    try:
        asyncio.run(opener.sign_in(name, server, echo, sys.stdin if sys.stdin.isatty() else None))
    except ToolError as exc:
        raise UsageError("mcp.unusable", name=name, reason=str(exc)) from exc


def _found(name: str, folder: Path, *, trust: bool) -> tuple[McpServer, ServerOpener]:
    settings = load_as_trusted(folder, trust=trust).settings
    if name not in settings.mcp.servers:
        raise UsageError("mcp.no_such", name=name)
    closed = (state_dir(), config_dir(), cache_dir())
    opener = ServerOpener(Path(os.path.realpath(folder)), settings.shell, closed=closed, env=os.environ)
    return replace(settings.mcp.servers[name], enabled=True), opener


async def _try(name: str, server: McpServer, opener: ServerOpener) -> ServerReport:
    async with aclosing(McpServers(McpSettings(servers={name: server}), opener)) as servers:
        with suppress(ToolError):  # the report has the reason
            await servers.connections[name].connect()
        return servers.reports()[0]
