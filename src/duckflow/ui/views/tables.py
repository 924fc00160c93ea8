"""Tables and lists: size of the prompt, costs, statistics and memories."""

from collections.abc import Mapping, Sequence
from typing import get_args

from duckflow.domain.decision import TaskProfile
from duckflow.domain.extensions import ServerReport
from duckflow.domain.model import PromptUse, Usage
from duckflow.domain.session_client import Permission
from duckflow.domain.state import AgentState, TierUsage
from duckflow.domain.work.memory import Memory
from duckflow.domain.work.outcomes import TARGETS, RequestStats
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, pad_to_width, width_of, wrap_beside
from duckflow.ui.views.approval import kind_text
from duckflow.ui.views.extensions import allowed_tools

_TOKENS: Mapping[str, str] = {
    "input": "input_tokens",
    "cached": "cached_tokens",
    "written": "cache_written_tokens",
    "output": "output_tokens",
    "thinking": "thinking_tokens",
}
"""Columns of the cost table, and the fields of `Usage` they show."""
_WHERE_NOT_ZERO = ("written", "thinking")
"""Columns that are left out if they contain only zeros."""


def cost_text(state: AgentState) -> str:
    """Return a table of calls and tokens, with costs if prices are known."""
    if not state.usage:
        return text("cost.none")
    used = {text(f"cost.of_{tier}"): one for tier, one in state.usage.items()}
    prices = [one.cost_usd for one in used.values() if one.cost_usd is not None]
    calls = sum(one.calls for one in used.values())
    tokens = sum((one.tokens for one in used.values()), Usage())
    total = TierUsage(calls=calls, tokens=tokens, cost_usd=sum(prices) if prices else None)
    if len(used) > 1:
        used[text("cost.total")] = total
    shown = [name for name, field in _TOKENS.items() if name not in _WHERE_NOT_ZERO or getattr(tokens, field)]
    rows = [[text(f"cost.{name}") for name in ("tier", "calls", *shown, "cost")]]
    for title, one in used.items():
        counts = (one.calls, *(getattr(one.tokens, _TOKENS[name]) for name in shown))
        cost = _NONE if one.cost_usd is None else f"${one.cost_usd:.4f}"
        rows.append([title, *(f"{count:,}" for count in counts), cost])
    return "\n".join(aligned(rows, names=0))


def aligned(rows: Sequence[Sequence[str]], names: int = 1) -> list[str]:
    """Return table lines. The first `names` columns are left-aligned; a row with one cell is a title."""
    whole = [row for row in rows if len(row) > 1]
    widths = [max(map(width_of, column)) for column in zip(*whole, strict=True)]
    lines: list[str] = []
    for row in rows:
        blanks = [" " * (wide - width_of(cell)) for cell, wide in zip(row, widths, strict=False)]
        cells = [cell + blank for cell, blank in zip(row[:names], blanks, strict=False)]
        cells += [blank + cell for cell, blank in zip(row[names:], blanks[names:], strict=True)]
        lines.append("  ".join(cells).rstrip())
    return lines


_NAME = 40
_PROFILES: tuple[str, ...] = get_args(TaskProfile)
_NONE = "–"
_STATS = {
    "done": ".0%",
    "done_at_once": ".0%",
    "accepted": ".0%",
    "attempts": ".1f",
    "satisfaction": ".0%",
    "rating": ".1f",
}
"""Columns after the number of requests, with the formats of their numbers."""


def stats_text(stats: Sequence[RequestStats]) -> str:
    """Return a table of request outcomes and their targets, or one line if there are no requests yet."""
    if not stats:
        return text("stats.none")
    rows = [["", *(text(f"stats.column.{column}") for column in ("requests", *_STATS))]]
    rows += [_stats_row(one) for one in (*(one for one in stats if one.by == "all"), TARGETS)]
    for by in ("profile", "model"):
        group = [_stats_row(one) for one in stats if one.by == by]
        rows += [[text(f"stats.by_{by}")], *group] if group else []
    unjudged = [one.not_judged for one in stats if one.by == "all" and one.not_judged]
    notes = [text("stats.otherwise", not_judged=f"{one:.0%}") for one in unjudged]
    return "\n".join([*aligned(rows), *notes])


def _stats_row(one: RequestStats) -> list[str]:
    if one.by in ("all", "target"):
        name = text(f"stats.{one.by}")
    elif one.by == "profile" and one.name in _PROFILES:
        name = f"  {text(f'stats.profile.{one.name}')}"
    else:
        name = "  " + cut_to_width(on_one_line(one.name) or text("stats.unknown"), _NAME)
    values = [(getattr(one, column), form) for column, form in _STATS.items()]
    counts = [_NONE if value is None else format(value, form) for value, form in values]
    return [name, str(one.requests or ""), *counts]


def memory_lines(memories: Sequence[Memory], here: str | None = None) -> list[str]:
    """Return a line for each memory. It names the memory's folder, unless that is `here`."""
    wide = max((len(str(one.id)) for one in memories), default=0)
    lines: list[str] = []
    for one in memories:
        when, kind = one.kept.astimezone().strftime("%Y-%m-%d"), text(f"memory.kind.{one.kind}")
        where = on_one_line(one.workspace) if one.workspace else text("memory.everywhere")
        place = "" if one.workspace and one.workspace == here else f" [{where}]"
        lines.append(f"{one.id:>{wide}}  {when}  {kind}{place}: {on_one_line(one.text)}")
    return lines or [text("memory.none")]


def permission_lines(permissions: Sequence[Permission], servers: Sequence[ServerReport]) -> list[str]:
    """Return a numbered line for each permission with its duration; then the allowed MCP tools."""
    tools = [
        f"  -  {text('permissions.mcp', server=on_one_line(one.name), tools=allowed_tools(one))}"
        for one in servers
        if one.allowed
    ]
    lines = [
        f"{number:>3}. {kind_text(one.kind)}: {text(f'permissions.lasts.{one.lasts}', since=one.since)}"
        for number, one in enumerate(permissions, start=1)
    ]
    usage = [text("permissions.usage")] if lines else []
    return [*lines, *tools, *usage] or [text("permissions.none")]


_BAR = 24
_MAX_NAMED_RESULTS = 12


def context_text(use: PromptUse, columns: int) -> str:
    """Return how much of the context window the prompt uses, its parts, and what was left out."""
    used = sum(use.tokens.values())
    share = used / use.window
    head = text(
        "context.head",
        model=use.model,
        used=f"{used:,}",
        window=f"{use.window:,}",
        share=f"{share:.0%}",
        source=text(f"window.{use.window_from}"),
    )
    lines = [head, f"  {_bar(share, min(_BAR * 2, columns - 3))}"]
    rows = [(text(f"prompt.section.{name}"), count) for name, count in use.tokens.items() if count]
    wide = max((width_of(title) for title, _ in rows), default=0)
    room = max(min(_BAR, columns - wide - 12), 4)
    most = max((count for _, count in rows), default=1)
    for title, count in rows:
        lines.append(f"  {pad_to_width(title, wide)}  {_bar(count / most, room)} {count:>7,}")
    if use.rules:
        lines.append(
            wrap_beside("  ", text("context.rules", names=on_one_line(", ".join(use.rules))), columns)
        )
    left = [text(f"context.left_out.{name}", count=count) for name, count in use.left_out.items() if count]
    if left:
        lines.append(text("context.left", what=", ".join(left)))
    if use.dropped:
        rest = len(use.dropped) - _MAX_NAMED_RESULTS
        named = [*use.dropped[:_MAX_NAMED_RESULTS], *([text("context.more", count=rest)] if rest > 0 else [])]
        lines.append(wrap_beside("    ", ", ".join(named), columns))
    if use.recap:
        recap = [wrap_beside("    ", line, columns) for line in use.recap.splitlines()]
        lines += [text("context.recap"), *recap]
    return "\n".join(lines)


def _bar(share: float, room: int) -> str:
    """Return a bar. At least one cell is full, because every part that is listed uses something."""
    full = min(max(round(share * room), 1), room)
    return "█" * full + "░" * (room - full)
