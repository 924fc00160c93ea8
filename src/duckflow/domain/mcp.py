"""An MCP server as it is listed: what it is, how it is, and what it offers."""

from typing import Literal

from duckflow.domain.frozen import Frozen

ServerStatus = Literal["waiting", "ready", "down", "off"]


class ServerReport(Frozen):
    """One server."""

    name: str
    status: ServerStatus
    what: str
    """The command, or the address."""
    problem: str = ""
    version: str = ""
    """Of the protocol."""
    tools: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    """Tools whose description is not the one that was accepted."""
    prompts: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
