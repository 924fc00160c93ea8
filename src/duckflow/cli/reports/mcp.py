"""The work of `duckflow mcp`: lists servers, and tries and removes one."""

import asyncio
import os
from pathlib import Path

from duckflow.config.files.mcp_servers import remove_server
from duckflow.config.loading import load_as_trusted, user_file
from duckflow.config.mcp import McpServer, McpSettings
from duckflow.config.places import cache_dir, config_dir, state_dir
from duckflow.domain.errors import UsageError
from duckflow.domain.extensions import ServerReport
from duckflow.domain.frozen import replace
from duckflow.tools.mcp.connection import ServerOpener, forget_pins
from duckflow.tools.mcp.servers import McpServers, report_of


def listed(folder: Path, *, trust: bool) -> list[ServerReport]:
    """Return all configured servers."""
    servers = load_as_trusted(folder, trust=trust).settings.mcp.servers
    return [report_of(name, server) for name, server in servers.items()]


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
    servers = McpServers(McpSettings(servers={name: server}), opener)
    try:
        await servers.ready()
        return servers.reports()[0]
    finally:
        await servers.aclose()


def forget(name: str) -> Path:
    """Remove a server and its accepted tool descriptions; return the changed file."""
    remove_server(user_file(), name)
    forget_pins(name)
    return user_file()
