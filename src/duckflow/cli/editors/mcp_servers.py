"""MCP servers that an editor passes on: used for that session, and kept in like any other (L4, M6).

An editor may have them from a project's settings. So they get the sandbox with the network, a look at the
folder and at what their command names, no variable of the user's, and a question before each call.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from acp import schema

from duckflow.config.files.mcp_servers import foreign_servers
from duckflow.config.loading import LoadedSettings
from duckflow.domain.frozen import replace

EditorServers = Sequence[
    schema.HttpMcpServer | schema.SseMcpServer | schema.AcpMcpServer | schema.McpServerStdio
]


def with_servers(loaded: LoadedSettings, servers: EditorServers) -> tuple[LoadedSettings, Mapping[str, str]]:
    """The settings with the editor's servers, and those that can't be used with the reason.

    The user's own server of the same name wins.
    """
    if not servers:
        return loaded, {}
    found, left_out = foreign_servers({one.name: _entry(one) for one in servers})
    filled = {name for name, one in found.items() if "${" in str((one.env, one.headers))}
    left_out |= dict.fromkeys(sorted(filled), "variables of yours are not passed on")
    mcp = loaded.settings.mcp
    ours = {name: one for name, one in found.items() if name not in filled}
    settings = replace(loaded.settings, mcp=replace(mcp, servers={**ours, **mcp.servers}))
    return replace(loaded, settings=settings), left_out


def _entry(server: object) -> Mapping[str, Any]:
    match server:
        case schema.McpServerStdio():
            env = {one.name: one.value for one in server.env}
            return {"command": server.command, "args": server.args, "env": env}
        case schema.HttpMcpServer() | schema.SseMcpServer():
            return {"url": server.url, "headers": {one.name: one.value for one in server.headers}}
        case _:
            return {}  # through the editor: not spoken here
