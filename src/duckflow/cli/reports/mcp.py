"""Tries an MCP server as a session would use it (`duckflow mcp test`)."""

import asyncio
import os
from contextlib import aclosing
from pathlib import Path

from duckflow.config.loading import load_as_trusted
from duckflow.config.mcp import McpServer, McpSettings
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.extensions import ServerReport
from duckflow.domain.frozen import replace
from duckflow.tools.mcp.connection import ServerOpener
from duckflow.tools.mcp.servers import McpServers


def tried(name: str, folder: Path, *, trust: bool) -> ServerReport:
    """Connect to a server and report the result."""
    settings = load_as_trusted(folder, trust=trust).settings
    if name not in settings.mcp.servers:
        raise UsageError("mcp.no_such", name=name)
    server = replace(settings.mcp.servers[name], enabled=True)
    closed = (state_dir(), config_dir(), cache_dir())
    opener = ServerOpener(Path(os.path.realpath(folder)), settings.shell, closed=closed, env=os.environ)
    return asyncio.run(_try(name, server, opener))


async def _try(name: str, server: McpServer, opener: ServerOpener) -> ServerReport:
    async with aclosing(McpServers(McpSettings(servers={name: server}), opener)) as servers:
        await servers.ready()
        return servers.reports()[0]
