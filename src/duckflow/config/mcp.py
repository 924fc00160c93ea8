"""The settings of MCP servers."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator
from pydantic_core import PydanticCustomError

from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex


def from_home(path: str) -> str:
    """Expand `~` to the user's home."""
    return os.path.expanduser(path)  # noqa: PTH111 - Path's own can raise


class McpServer(Frozen):
    """One MCP server: a program (`command`) or an address (`url`)."""

    command: tuple[str, ...] = ()
    """Program and its arguments."""

    url: str = ""
    """Address of a server that speaks streamable HTTP."""

    env: dict[str, str] = Field(default_factory=dict)
    """Variables for the program; `${NAME}` and `${NAME:-default}` are taken from your environment."""

    env_file: str = ""
    """File with more variables for the program, one `NAME=value` a line."""

    headers: dict[str, str] = Field(default_factory=dict)
    """Headers for the address; `${NAME}` as above."""

    enabled: bool = True
    """Use this server."""

    sandbox: bool = True
    """Run the program in the sandbox."""

    network: bool = False
    """Let the program use the network."""

    workspace: Literal["none", "read", "write"] = "read"
    """The program's access to the workspace; `/undo` can't restore what it writes there."""

    read: tuple[Annotated[str, AfterValidator(from_home)], ...] = ()
    """More folders and files the program may read; `~` is your home."""

    write: tuple[Annotated[str, AfterValidator(from_home)], ...] = ()
    """More folders and files the program may change; `~` is your home."""

    start_timeout_s: Annotated[float, Field(gt=0, le=600, allow_inf_nan=False)] = 30.0
    """Seconds the server has to start."""

    timeout_s: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] = 60.0
    """Time limit of one call, in seconds."""

    @model_validator(mode="after")
    def _one_way(self) -> "McpServer":
        if bool(self.command) == bool(self.url) or (self.url and not _HTTP.match(self.url)):
            raise PydanticCustomError("mcp_server", "a command or an http address")
        if self.headers and self.url.startswith("http://") and not _LOOPBACK.match(self.url):
            raise PydanticCustomError("mcp_server", "headers need https")
        return self


def user_variables(said: str) -> set[str]:
    """Return the variables of the user that a server's settings name."""
    return {found[1] for found in VARIABLE.finditer(said)} - {*WORKSPACE_NAMES, WORKSPACE_NAME}


VARIABLE = lazy_regex(r"\$\{(\w+)(?::-([^}]*))?\}")
"""Place in a command, address, variable or header that is filled when the server is started."""
WORKSPACE_NAMES = ("workspaceFolder", "CLAUDE_PROJECT_DIR")
"""Names in such a place that stand for the workspace."""
WORKSPACE_NAME = "workspaceFolderBasename"
"""Name in such a place that stands for the last part of the workspace's path."""

_HTTP = lazy_regex(r"https?://[^/\s@]+(/\S*)?$")
_LOOPBACK = lazy_regex(r"http://(localhost|127\.\d+\.\d+\.\d+|\[::1\])[:/]")
ServerName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]


class McpSettings(Frozen):
    """Tools from other programs, over the Model Context Protocol; `duckflow mcp add` writes this for you."""

    servers: dict[ServerName, McpServer] = Field(default_factory=dict)
    """The servers, each in a table `[mcp.servers.NAME]`."""

    max_result_chars: Annotated[int, Field(ge=500, le=1_000_000)] = 30_000
    """Characters of a result that are kept, half from its beginning and half from its end."""
