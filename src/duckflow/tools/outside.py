"""Operations that reach outside, MCP servers and pages of the web: loaded only if they are set."""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.config.settings import Settings
from duckflow.tools.catalogue import Tool

if TYPE_CHECKING:
    from duckflow.tools.mcp.operations import McpServers

Clean = Callable[[str], str]
"""Hides secrets in a text."""


def mcp_servers(
    settings: Settings,
    root: Path,
    closed: Iterable[Path],
    env: Mapping[str, str],
    clean: Callable[[str], str],
) -> "McpServers | None":
    """The servers that are set, if any is. `closed` are Duckflow's own folders"""
    if not any(server.enabled for server in settings.mcp.servers.values()):
        return None
    from duckflow.tools.mcp.opening import ServerOpener  # noqa: PLC0415 - only if servers are set
    from duckflow.tools.mcp.operations import McpServers  # noqa: PLC0415 - as above
    from duckflow.tools.mcp.pins import Pins  # noqa: PLC0415 - as above

    return McpServers(settings.mcp, ServerOpener(root, settings.shell, closed=closed, env=env), Pins(), clean)


def page_tools(settings: Settings, clean: Clean) -> tuple[Tool, ...]:
    """`web.fetch`, if it is switched on."""
    if not settings.web.fetch:
        return ()
    from duckflow.tools.web.fetch import web_tools  # noqa: PLC0415 - only if it is switched on

    return web_tools(settings.web, clean)
