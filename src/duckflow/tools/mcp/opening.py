"""Connect to servers by their settings. Loads the `mcp` package, in a thread."""

import asyncio
import os
import re
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from duckflow.config.mcp import McpServer
from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.sandbox.server_process import ServerOrder, ServerProcess

if TYPE_CHECKING:
    from duckflow.tools.mcp.client import ConnectedServer

_VARIABLE = lazy_regex(r"\$\{(\w+)\}")


class ServerOpener:
    """Opens the servers of one workspace."""

    def __init__(
        self, workspace: Path, shell: ShellSettings, *, closed: Iterable[Path], env: Mapping[str, str]
    ) -> None:
        self._workspace = workspace
        self._shell = shell
        self._closed = tuple(closed)
        self._env = env

    @asynccontextmanager
    async def connect(self, server: McpServer) -> AsyncGenerator["ConnectedServer"]:
        """Connect to a server until the block ends."""
        try:
            await asyncio.to_thread(import_module, "duckflow.tools.mcp.client")
            from duckflow.tools.mcp.client import open_address, open_process  # noqa: PLC0415 - takes seconds
        except ImportError as exc:
            raise ToolError("the package is missing; install it with: pip install 'duckflow[mcp]'") from exc
        if server.url:
            headers = self._filled(server.headers)
            async with open_address(server.url, headers, server.timeout_s) as session:
                yield session
            return
        process = ServerProcess(
            self._order(server), self._workspace, self._shell, closed=self._closed, env=self._env
        )
        async with open_process(process) as session:
            yield session

    def _order(self, server: McpServer) -> ServerOrder:
        return ServerOrder(
            argv=server.command,
            env=self._filled(server.env),
            sandboxed=server.sandbox,
            network=server.network,
            workspace=server.workspace,
            reads=tuple(os.path.realpath(path) for path in server.read),
        )

    def _filled(self, values: Mapping[str, str]) -> dict[str, str]:
        """Fill `${NAME}` from the user's environment."""

        def value(found: re.Match[str]) -> str:
            if found[1] not in self._env:
                raise ToolError(f"the variable {found[1]} is not set")
            return self._env[found[1]]

        return {name: _VARIABLE.sub(value, text) for name, text in values.items()}
