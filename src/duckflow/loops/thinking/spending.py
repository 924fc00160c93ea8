"""What model calls use, written down call by call: tokens by tier, and cost where a price is known."""

from collections.abc import Awaitable, Callable

from duckflow.domain.events import UsageReported
from duckflow.domain.model import TierName, Usage
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import Session
from duckflow.services.decide import ModelCall

Price = Callable[[str, Usage], Awaitable[float | None]]


class Spending:
    """Reports what the tiers of a session use."""

    def __init__(self, session: Session, tiers: Tiers, price: Price) -> None:
        self._session = session
        self._tiers = tiers
        self._price = price

    async def report(self, tier: TierName, *calls: ModelCall) -> None:
        """Record calls that were made with a tier."""
        model = self._tiers.name(tier)
        reports = [
            UsageReported(
                tier=tier,
                model=model,
                output=call.output,
                tokens=call.tokens,
                cost_usd=await self._price(model, call.tokens),
            )
            for call in calls
        ]
        self._session.record(*reports)
