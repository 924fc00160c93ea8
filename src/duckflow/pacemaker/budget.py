"""Limits on tokens and cost of a request: a warning on the way, a question when they are used up (I9)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.config.settings import Budget
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line
from duckflow.domain.state import Request

Resource = Literal["tokens", "cost"]
Level = Literal["fine", "near", "spent"]

WARN_SHARE = 0.8
"""Share of a budget from which on the user is warned."""


class BudgetLevel(Frozen):
    """Usage of the budget that is closest to its limit."""

    level: Level = "fine"
    resource: Resource | None = None
    used: float = 0.0
    maximum: float = 0.0

    @property
    def share(self) -> float:
        """Used share of the budget, where 1 is all of it."""
        return self.used / self.maximum if self.maximum else 0.0


def judge(request: Request, budget: Budget) -> BudgetLevel:
    """Return the budget level of a request. It is fine if there is no limit, or no known price."""
    return max(_levels(request, budget), key=lambda level: level.share, default=BudgetLevel())


def _levels(request: Request, budget: Budget) -> Iterable[BudgetLevel]:
    resources: tuple[tuple[Resource, float | None, float | None], ...] = (
        ("tokens", request.tokens, budget.max_tokens),
        ("cost", request.cost_usd, budget.max_cost_usd),
    )
    for resource, used, most in resources:
        if used is not None and most is not None:
            maximum = most * request.grants
            near = used >= WARN_SHARE * maximum
            level = "spent" if used >= maximum else "near" if near else "fine"
            yield BudgetLevel(level=level, resource=resource, used=used, maximum=maximum)


def explain_budget(level: BudgetLevel) -> TextLine | None:
    """Return a line about the used tokens or money. None unless the limit is near."""
    if level.level == "fine" or level.resource is None:
        return None
    shown = "{:,.0f}" if level.resource == "tokens" else "${:,.2f}"
    used, maximum = shown.format(level.used), shown.format(level.maximum)
    return line(f"limit.budget.{level.resource}_{level.level}", used=used, maximum=maximum)
