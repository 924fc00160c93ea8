"""All tools: those for files, and those that reach outside, which are loaded only if configured."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duckflow.config.settings import Settings
from duckflow.tools.catalogue import Tool
from duckflow.tools.files.cells import EDIT_CELL
from duckflow.tools.files.changing import DELETE_FILE, EDIT_FILE, MOVE_FILE, WRITE_FILE
from duckflow.tools.files.reading import READ_FILE
from duckflow.tools.outline.outline import OUTLINE
from duckflow.tools.searching.listing import list_tool
from duckflow.tools.searching.search import search_tool

if TYPE_CHECKING:
    from duckflow.tools.mcp.servers import McpServers


def file_tools(ripgrep: Path | None) -> tuple[Tool[Any], ...]:
    """Return the file tools in the order of the prompt. `ripgrep` lists and searches, if it is installed."""
    return (
        READ_FILE,
        WRITE_FILE,
        EDIT_FILE,
        DELETE_FILE,
        MOVE_FILE,
        EDIT_CELL,
        list_tool(ripgrep),
        search_tool(ripgrep),
        OUTLINE,
    )


def mcp_servers(
    settings: Settings,
    root: Path,
    closed: tuple[Path, ...],
    env: Mapping[str, str],
    clean: Callable[[str], str],
) -> "McpServers | None":
    """Return the configured MCP servers, or None. They can't see `closed` folders; `clean` hides secrets."""
    if not any(server.enabled for server in settings.mcp.servers.values()):
        return None
    from duckflow.tools.mcp.connection import ServerOpener  # noqa: PLC0415 - only if servers are set
    from duckflow.tools.mcp.servers import McpServers  # noqa: PLC0415 - as above

    return McpServers(settings.mcp, ServerOpener(root, settings.shell, closed=closed, env=env), clean)


def page_tools(
    settings: Settings, env: Mapping[str, str], model: Callable[[], str], clean: Callable[[str], str]
) -> tuple[Tool[Any], ...]:
    """Return `web.fetch` and `web.search`, if they are switched on. `model` names the session's model."""
    tools: tuple[Tool[Any], ...] = ()
    if settings.web.fetch:
        from duckflow.tools.web.pages import web_tools  # noqa: PLC0415 - only if it is switched on

        tools += web_tools(settings.web, clean)
    if settings.web.search:
        from duckflow.tools.web.search import search_tools  # noqa: PLC0415 - as above

        tools += search_tools(settings.web, env, model, clean)
    return tools
