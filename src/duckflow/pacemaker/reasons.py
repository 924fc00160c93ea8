"""A budget that runs out, as a line for the user (SPEC I9)."""

from duckflow.domain.pacing.limits import ReasonLine
from duckflow.pacemaker.budget import BudgetLevel


def explain_budget(level: BudgetLevel) -> ReasonLine | None:
    """How much of tokens or money is used, where that is worth a word."""
    if level.level == "fine" or level.resource is None:
        return None
    shown = "{:,.0f}" if level.resource == "tokens" else "${:,.2f}"
    return ReasonLine(
        key=f"limit.budget.{level.resource}_{level.level}",
        values={"used": shown.format(level.used), "maximum": shown.format(level.maximum)},
    )
