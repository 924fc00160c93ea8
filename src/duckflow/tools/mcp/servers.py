"""Configured MCP servers: a source of operations, and of prompts for the user (L4)."""

import asyncio
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from duckflow.config.mcp import McpServer, McpSettings
from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError, UsageError
from duckflow.domain.extensions import ServerReport
from duckflow.domain.frozen import replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import head_and_tail
from duckflow.tools.catalogue import Tool
from duckflow.tools.mcp.connection import ServerConnection
from duckflow.tools.mcp.opening import ServerOpener
from duckflow.tools.mcp.operations import RESOURCE, McpOperations

_MENTION = lazy_regex(r"(?<!\S)@([a-z0-9][a-z0-9_-]*):(\S{1,1000})")


class McpServers:
    """Connects to the configured servers and provides their tools. Starts nothing before it is needed."""

    def __init__(
        self,
        settings: McpSettings,
        opener: ServerOpener,
        clean: Callable[[str], str] = lambda text: text,
    ) -> None:
        self._settings = settings
        self._connecting: asyncio.Task[None] | None = None
        self.connections: Mapping[str, ServerConnection] = {
            name: ServerConnection(name, one, opener) for name, one in settings.servers.items() if one.enabled
        }
        self._operations = McpOperations(self.connections, settings.max_result_chars, clean)

    @property
    def revision(self) -> int:
        """Number that changes whenever the tools change."""
        offers = ((name, one.offer.tools) for name, one in self.connections.items())
        return hash(tuple((name, *(tool.name for tool in tools)) for name, tools in offers))

    async def ready(self) -> None:
        """Connect to all servers, once. Servers that fail are known to be down afterwards."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect_all())
        await asyncio.shield(self._connecting)

    async def _connect_all(self) -> None:
        await asyncio.gather(*map(_try_to_connect, self.connections.values()))

    async def aclose(self) -> None:
        """Close all connections."""
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.wait([self._connecting])
        await asyncio.gather(*(one.aclose() for one in self.connections.values()))

    def tools(self) -> tuple[Tool[Any], ...]:
        """Return `mcp.describe`, which lists the names, and the tools themselves, which no prompt shows."""
        return self._operations.tools() if self.connections else ()

    def mentioned(self, text: str) -> tuple[Action, ...]:
        """Return actions that read the resources mentioned in a message as `@server:uri`."""
        return tuple(
            Action(operation=RESOURCE, args={"server": server, "uri": uri}, reasoning="the user mentioned it")
            for server, uri in dict.fromkeys(_MENTION.findall(text))
            if server in self.connections
        )

    def reports(self) -> list[ServerReport]:
        """Return all servers with their status."""
        return [self._report(name, server) for name, server in self._settings.servers.items()]

    def _report(self, name: str, server: McpServer) -> ServerReport:
        written = report_of(name, server)
        connection = self.connections.get(name)
        if connection is None:
            return written
        return replace(
            written,
            status=connection.status,
            problem=connection.problem,
            version=connection.offer.version,
            tools=tuple(one.name for one in connection.offer.tools),
            changed=tuple(connection.changed),
            prompts=tuple(one.name for one in connection.offer.prompts),
            resources=connection.offer.resources,
        )

    async def prompt(self, server: str, name: str, argument: str) -> str:
        """Return the text of a prompt. Typed words fill its arguments, and the last one takes the rest."""
        connection = self.connections.get(server)
        found = [one for one in connection.offer.prompts if one.name == name] if connection else []
        if connection is None or not found:
            raise UsageError("mcp.no_prompt", name=f"{server}.{name}")
        words = argument.split(maxsplit=max(len(found[0].arguments) - 1, 0)) if argument else []
        given = dict(zip(found[0].arguments, words, strict=False))
        missing = [one for one in found[0].required if one not in given]
        if missing:
            raise UsageError("mcp.prompt_needs", name=f"mcp.{server}.{name}", arguments=", ".join(missing))
        try:
            return head_and_tail(await connection.prompt(name, given), self._settings.max_result_chars)
        except ToolError as exc:
            raise UsageError("mcp.unusable", name=server, reason=str(exc)) from exc


def report_of(name: str, server: McpServer) -> ServerReport:
    """Return a report on a server by its settings."""
    what = server.url or shlex.join(server.command)
    return ServerReport(name=name, status="waiting" if server.enabled else "off", what=what)


async def _try_to_connect(connection: ServerConnection) -> None:
    try:
        await connection.connect()
    except ToolError:
        return  # it is known to be down, and reports why when it is asked
