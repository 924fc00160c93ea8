"""What the user brought along, in lines: hooks, skills, plugins, MCP servers."""

from collections.abc import Iterator, Sequence

from duckflow.domain.extensions import Extensions, Hook, ServerReport
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line


def hook_lines(brought: Extensions) -> Sequence[str]:
    """Every hook, when it runs, and which file it is from."""
    lines = [_hook_line(hook) for listed in brought.hooks for hook in listed.hooks] or [text("hooks.none")]
    if unused := [name for listed in brought.hooks for name in listed.unused]:
        lines.append(text("hooks.unused", names=on_one_line(", ".join(unused))))
    return lines


def skill_lines(brought: Extensions) -> Sequence[str]:
    """Every skill, and whose it is."""
    return [
        f"{skill.name}  ({text('skills.project' if skill.own else 'skills.user')})"
        f"  {on_one_line(skill.description)}"
        for skill in brought.skills
    ] or [text("skills.none")]


def plugin_lines(brought: Extensions) -> Sequence[str]:
    """Every plugin, and what it brings, or why it brings nothing."""
    return [
        on_one_line(f"{one.name} {one.version}  {one.error or ', '.join(one.brings)}")
        for one in brought.plugins
    ] or [text("plugins.none")]


def _hook_line(hook: Hook) -> str:
    what = " ".join(part for part in (hook.event, hook.matcher, hook.condition) if part)
    return on_one_line(f"{what}: {hook.command}  ({hook.origin}, {hook.seconds:g} s)")


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
