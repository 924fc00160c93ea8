"""What models used in this session, by tier."""

from duckflow.domain.state import AgentState, TierUsage
from duckflow.i18n.catalogue import text
from duckflow.ui.wrapping import width_of

_COLUMNS = ("tier", "calls", "input", "cached", "output", "cost")


def cost_text(state: AgentState) -> str:
    """A table: calls, tokens read, read before, written, and money where a price is known."""
    if not state.usage:
        return text("cost.none")
    rows = [[text(f"cost.{name}") for name in _COLUMNS]]
    rows += [[text(f"cost.of_{tier}"), *_figures(used)] for tier, used in state.usage.items()]
    if len(state.usage) > 1:
        rows.append([text("cost.total"), *_figures(_total(state))])
    widths = [max(width_of(row[place]) for row in rows) for place in range(len(_COLUMNS))]
    return "\n".join(
        "  ".join(_padded(cell, wide) for cell, wide in zip(row, widths, strict=True)) for row in rows
    )


def _figures(used: TierUsage) -> list[str]:
    tokens = used.tokens
    counts = (used.calls, tokens.input_tokens, tokens.cached_tokens, tokens.output_tokens)
    cost = "–" if used.cost_usd is None else f"${used.cost_usd:.4f}"
    return [*(f"{count:,}" for count in counts), cost]


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


def _padded(cell: str, wide: int) -> str:
    return " " * (wide - width_of(cell)) + cell
