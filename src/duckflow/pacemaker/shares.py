"""Shares of a request's budget for its agents, and the reason for them (O1, O2, I2, I9)."""

import math

from duckflow.config.settings import PacemakerSettings
from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine, line
from duckflow.domain.state import Request
from duckflow.pacemaker.limit import MIN_LOOPS

LEAST_TOKENS, LEAST_USD = 1_000, 0.001
"""Smallest share of a budget. An agent that gets no more than this stops at its first call."""


class Share(Frozen):
    """Limits for each of several agents; None for a budget without a limit."""

    loops: int
    most_loops: int
    """Loops up to which an agent's own pacemaker may raise its limit while it makes progress."""
    tokens: int | None = None
    cost_usd: float | None = None
    agents: int = 1

    @property
    def reason(self) -> TextLine:
        """Explanation of the share for the user."""
        values = {"agents": self.agents, "loops": self.loops, "parts": self.agents + 1}
        if self.cost_usd is not None:
            return line("agents.share_cost", **values, cost=f"{self.cost_usd:.2f}")
        if self.tokens is not None:
            return line("agents.share_tokens", **values, tokens=f"{self.tokens:,}")
        return line("agents.share", **values)


def share_of(request: Request | None, settings: PacemakerSettings, agents: int) -> Share:
    """Return what each agent may use. The budget that is left is divided, with one part for what follows."""
    limits, budget = settings.dynamic_limits, settings.budget
    loops = request.limit.limit if request and request.limit else limits.max_loops
    grants, parts = (request.grants if request else 1), agents + 1
    used, paid = (request.tokens, request.cost_usd or 0.0) if request else (0, 0.0)
    tokens = None if budget.max_tokens is None else (budget.max_tokens * grants - used) // parts
    cost = None if budget.max_cost_usd is None else (budget.max_cost_usd * grants - paid) / parts
    return Share(
        loops=max(MIN_LOOPS, min(math.ceil(loops), limits.hard_max_loops)),
        most_loops=max(MIN_LOOPS, limits.hard_max_loops),
        tokens=None if tokens is None else max(tokens, LEAST_TOKENS),
        cost_usd=None if cost is None else max(cost, LEAST_USD),
        agents=agents,
    )
