"""MCP servers as a list: for `/mcp` and `duckflow mcp`."""

from collections.abc import Iterator, Sequence

from duckflow.domain.extensions import ServerReport
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line


def server_lines(servers: Sequence[ServerReport]) -> Iterator[str]:
    """Each server in a line, what it offers and what is wrong below it."""
    if not servers:
        yield text("mcp.none")
    for one in servers:
        status = text(f"mcp.status.{one.status}")
        yield text("mcp.line", name=one.name, status=status, what=on_one_line(one.what))
        if one.problem:
            yield f"  {on_one_line(one.problem)}"
        if one.tools:
            yield "  " + text("mcp.tools", count=len(one.tools), names=", ".join(one.tools))
        if one.changed:
            yield "  " + text("mcp.changed", names=", ".join(one.changed))
        if one.prompts:
            yield "  " + text(
                "mcp.prompts", names=", ".join(f"/mcp.{one.name}.{name}" for name in one.prompts)
            )
        if one.resources:
            listed = ", ".join(f"@{one.name}:{on_one_line(uri)}" for uri in one.resources)
            yield "  " + text("mcp.resources", names=listed)
