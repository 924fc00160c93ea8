"""Lines about extensions: hooks, skills, plugins and MCP servers."""

from collections.abc import Iterator, Sequence

from duckflow.domain.extensions import Extensions, Hook, ServerReport
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line


def hook_lines(extensions: Extensions) -> Sequence[str]:
    """Return a line for each hook: when it runs, and the file it comes from."""
    lines = [_hook_line(hook) for listed in extensions.hooks for hook in listed.hooks] or [text("hooks.none")]
    if unused := [name for listed in extensions.hooks for name in listed.unused]:
        lines.append(text("hooks.unused", names=on_one_line(", ".join(unused))))
    return lines


def skill_lines(extensions: Extensions) -> Sequence[str]:
    """Return a line for each skill, which says whether it belongs to the project or the user."""
    return [
        f"{skill.name}  ({text('skills.project' if skill.own else 'skills.user')})"
        f"  {on_one_line(skill.description)}"
        for skill in extensions.skills
    ] or [text("skills.none")]


def plugin_lines(extensions: Extensions) -> Sequence[str]:
    """Return a line for each plugin: what it adds, or its error."""
    return [
        on_one_line(f"{one.name} {one.version}  {one.error or ', '.join(one.brings)}")
        for one in extensions.plugins
    ] or [text("plugins.none")]


def _hook_line(hook: Hook) -> str:
    what = " ".join(part for part in (hook.event, hook.matcher, hook.condition) if part)
    return on_one_line(f"{what}: {hook.command}  ({hook.origin}, {hook.seconds:g} s)")


def allowed_tools(server: ServerReport) -> str:
    """Return the tools of a server that the user has allowed permanently, in words."""
    kinds = {"*": text("mcp.allowed_all"), "?reading": text("mcp.allowed_reading")}
    return ", ".join(kinds.get(name, name) for name in server.allowed)


def server_lines(servers: Sequence[ServerReport]) -> Iterator[str]:
    """Yield a line for each MCP server, and below it its tools, prompts and problems."""
    if not servers:
        yield text("mcp.none")
    for one in servers:
        status = text(f"mcp.status.{one.status}")
        yield text("mcp.line", name=one.name, status=status, what=on_one_line(one.what))
        yield from (f"  {on_one_line(said)}" for said in one.problem.splitlines())
        if one.advice:
            yield "  " + text(one.advice.key, **one.advice.values)
        if one.tools:
            yield "  " + text("mcp.tools", count=len(one.tools), names=", ".join(one.tools))
        if one.changed:
            yield "  " + text("mcp.changed", names=", ".join(one.changed))
        if one.allowed:
            yield "  " + text("mcp.allowed", names=allowed_tools(one))
        if one.prompts:
            yield "  " + text(
                "mcp.prompts", names=", ".join(f"/mcp.{one.name}.{name}" for name in one.prompts)
            )
        if one.resources:
            listed = ", ".join(f"@{one.name}:{on_one_line(uri)}" for uri in one.resources)
            yield "  " + text("mcp.resources", names=listed)
