"""Limits on tokens and cost, besides loops: a warning on the way, a question at the end (SPEC I9)."""

from collections.abc import Iterable
from typing import Literal

from duckflow.config.pacing import Budget
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.limits import ReasonLine

Resource = Literal["tokens", "cost"]
Level = Literal["fine", "near", "spent"]


class Spent(Frozen):
    """What a request has used. `cost_usd` is None if no price is known."""

    tokens: int = 0
    cost_usd: float | None = None
    grants: int = 1
    """How often the whole budget was given: once to begin with, once more each time the user says go on."""


class BudgetLevel(Frozen):
    """How much of the budget is gone, of what there is least left of."""

    level: Level = "fine"
    resource: Resource | None = None
    used: float = 0.0
    maximum: float = 0.0

    @property
    def share(self) -> float:
        """The part that is used; 1 is all of it."""
        return self.used / self.maximum if self.maximum else 0.0


def judge(spent: Spent, budget: Budget) -> BudgetLevel:
    """Where the budget stands; fine if nothing is limited or no price is known."""
    return max(_levels(spent, budget), key=lambda level: level.share, default=BudgetLevel())


def _levels(spent: Spent, budget: Budget) -> Iterable[BudgetLevel]:
    resources: tuple[tuple[Resource, float | None, float | None], ...] = (
        ("tokens", spent.tokens, budget.max_tokens),
        ("cost", spent.cost_usd, budget.max_cost_usd),
    )
    for resource, used, most in resources:
        if used is not None and most is not None:
            maximum = most * max(spent.grants, 1)
            yield BudgetLevel(
                level=_level(used, maximum, budget.warn_share), resource=resource, used=used, maximum=maximum
            )


def _level(used: float, maximum: float, warn_share: float) -> Level:
    if used >= maximum:
        return "spent"
    return "near" if used >= warn_share * maximum else "fine"


def explain_budget(level: BudgetLevel) -> ReasonLine | None:
    """How much of tokens or money is used, where that is worth a word."""
    if level.level == "fine" or level.resource is None:
        return None
    shown = "{:,.0f}" if level.resource == "tokens" else "${:,.2f}"
    return ReasonLine(
        key=f"limit.budget.{level.resource}_{level.level}",
        values={"used": shown.format(level.used), "maximum": shown.format(level.maximum)},
    )
