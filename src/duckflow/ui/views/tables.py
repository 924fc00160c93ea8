"""Tables and lists: what is in the prompt, what models used, how requests ended, what is remembered."""

from collections.abc import Callable, Mapping, Sequence
from typing import get_args

from duckflow.domain.decision import TaskProfile
from duckflow.domain.model import PromptUse
from duckflow.domain.state import AgentState, TierUsage
from duckflow.domain.work.memory import Memory
from duckflow.domain.work.outcomes import TARGETS, RequestStats
from duckflow.i18n.catalogue import text
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width, width_of, wrap_beside

_COUNTS: Mapping[str, Callable[[TierUsage], int]] = {
    "calls": lambda used: used.calls,
    "input": lambda used: used.tokens.input_tokens,
    "cached": lambda used: used.tokens.cached_tokens,
    "written": lambda used: used.tokens.cache_written_tokens,
    "output": lambda used: used.tokens.output_tokens,
    "thinking": lambda used: used.tokens.thinking_tokens,
}
_WHERE_NOT_ZERO = ("written", "thinking")
"""Columns that only some providers fill."""


def cost_text(state: AgentState) -> str:
    """A table: calls, tokens of input and output and the parts of both, and money if a price is known."""
    if not state.usage:
        return text("cost.none")
    total = _total(state)
    counts = [name for name, count in _COUNTS.items() if count(total) or name not in _WHERE_NOT_ZERO]
    rows = [[text(f"cost.{name}") for name in ("tier", *counts, "cost")]]
    rows += [[text(f"cost.of_{tier}"), *_usage_cells(used, counts)] for tier, used in state.usage.items()]
    if len(state.usage) > 1:
        rows.append([text("cost.total"), *_usage_cells(total, counts)])
    return "\n".join(aligned(rows, names=0))


def _usage_cells(used: TierUsage, counts: Sequence[str]) -> list[str]:
    cost = "–" if used.cost_usd is None else f"${used.cost_usd:.4f}"
    return [*(f"{_COUNTS[name](used):,}" for name in counts), cost]


def _total(state: AgentState) -> TierUsage:
    total = TierUsage()
    for used in state.usage.values():
        known = [cost for cost in (total.cost_usd, used.cost_usd) if cost is not None]
        total = TierUsage(
            calls=total.calls + used.calls,
            tokens=total.tokens + used.tokens,
            cost_usd=sum(known) if known else None,
        )
    return total


def aligned(rows: Sequence[Sequence[str]], names: int = 1) -> list[str]:
    """A table: numbers end where their titles end, and the first columns, `names` of them, begin so.

    A row with one cell is a title of those below it.
    """
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
_STATS_COLUMNS = ("requests", "done", "done_at_once", "accepted", "attempts", "satisfaction", "rating")


def stats_text(stats: Sequence[RequestStats]) -> str:
    """All of it against what is aimed at; one line if there is nothing yet."""
    if not stats:
        return text("stats.none")
    rows = [["", *(text(f"stats.column.{column}") for column in _STATS_COLUMNS)]]
    rows += [_row(one) for one in stats if one.by == "all"]
    rows.append(_row(TARGETS))
    for by in ("profile", "model"):
        group = [_row(one) for one in stats if one.by == by]
        rows += [[text(f"stats.by_{by}")], *group] if group else []
    unjudged = [one.not_judged for one in stats if one.by == "all" and one.not_judged]
    return "\n".join([*aligned(rows), *(text("stats.otherwise", not_judged=_share(one)) for one in unjudged)])


def _row(one: RequestStats) -> list[str]:
    return [
        _name(one),
        str(one.requests) if one.requests else "",
        _share(one.done),
        _share(one.done_at_once),
        _share(one.accepted),
        _number(one.attempts, 1),
        _number(one.satisfaction, 2),
        _number(one.rating, 1),
    ]


def _name(one: RequestStats) -> str:
    if one.by in ("all", "target"):
        return text(f"stats.{one.by}")
    if one.by == "profile" and one.name in _PROFILES:
        return f"  {text(f'stats.profile.{one.name}')}"
    return "  " + cut_to_width(on_one_line(one.name) or text("stats.unknown"), _NAME)


def _share(value: float | None) -> str:
    return _NONE if value is None else f"{value:.0%}"


def _number(value: float | None, places: int) -> str:
    return _NONE if value is None else f"{value:.{places}f}"


def memory_lines(memories: Sequence[Memory], here: str | None = None) -> list[str]:
    """A line for each; the folder it belongs to is named unless that is `here`."""
    if not memories:
        return [text("memory.none")]
    wide = max(len(str(one.id)) for one in memories)
    return [_memory_line(one, wide, here) for one in memories]


def _memory_line(one: Memory, wide: int, here: str | None) -> str:
    when = one.kept.astimezone().strftime("%Y-%m-%d")
    kind = text(f"memory.kind.{one.kind}")
    where = on_one_line(one.workspace) if one.workspace else text("memory.everywhere")
    place = "" if one.workspace and one.workspace == here else f" [{where}]"
    return f"{one.id:>{wide}}  {when}  {kind}{place}: {on_one_line(one.text)}"


_BAR = 24
_NAMED = 12
"""How many results that were left out are named."""
_FULL, _EMPTY = "█", "░"


def context_text(use: PromptUse, columns: int) -> str:
    """The whole of the window, its parts by size of what they take, and what did not fit."""
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
    rows = [(text(f"prompt.section.{name}"), count) for name, count in use.tokens.items() if count]
    wide = max((width_of(title) for title, _ in rows), default=0)
    room = max(min(_BAR, columns - wide - 12), 4)
    most = max((count for _, count in rows), default=1)
    lines = [
        f"  {title}{' ' * (wide - width_of(title))}  {_bar(count / most, room)} {count:>7,}"
        for title, count in rows
    ]
    left = [text(f"context.left_out.{name}", count=count) for name, count in use.left_out.items() if count]
    more = [text("context.left", what=", ".join(left))] if left else []
    if use.dropped:
        rest = len(use.dropped) - _NAMED
        last = [text("context.more", count=rest)] if rest > 0 else []
        more.append(wrap_beside("    ", ", ".join([*use.dropped[:_NAMED], *last]), columns))
    if use.recap:
        more += [
            text("context.recap"),
            *(wrap_beside("    ", line, columns) for line in use.recap.splitlines()),
        ]
    return "\n".join([head, f"  {_bar(share, min(_BAR * 2, columns - 3))}", *lines, *more])


def _bar(share: float, room: int) -> str:
    """At least a little of it is full, since nothing is shown that takes nothing."""
    full = min(max(round(share * room), 1), room)
    return _FULL * full + _EMPTY * (room - full)
