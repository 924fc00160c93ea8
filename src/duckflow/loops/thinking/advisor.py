"""The advisor asks the side questions of `services/`, and records the usage of every model call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from duckflow.dialects.dialect import ModelCall
from duckflow.domain.errors import ProviderError
from duckflow.domain.events import UsageReported
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.model import TierName, Usage
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import SessionPart
from duckflow.pacemaker.effort import effort_for_question
from duckflow.services.questions import Answer, Draft, Question, put


@dataclass(eq=False)
class Advisor(SessionPart):
    """Asks a side question to the model that it names."""

    _tiers: Tiers
    _price: Callable[[str, Usage], Awaitable[float | None]]

    async def is_small(self, tier: TierName) -> bool:
        """Return whether the model of a tier (creative, fast and so on) is small."""
        return (await self._tiers.client(tier)).traits.small

    def same_model(self, one: TierName, other: TierName) -> bool:
        """Return whether one model serves both tiers."""
        return self._tiers.name(one) == self._tiers.name(other)

    async def ask(
        self, question: Question[Draft, Answer], on_update: Callable[[LiveUpdate], None] = lambda _: None
    ) -> Answer:
        """Return the answer, or the question's fallback. Raise ProviderError if there is no fallback."""
        asked = question.asked
        try:
            client = await self._tiers.client(asked.tier)
            if client.traits.small and not asked.small and question.otherwise is not None:
                return question.otherwise()
            await self._session.pause()
            effort = effort_for_question(self._state, asked.effort)
            answer, tokens = await put(client, question, on_update, effort)
        except ProviderError as error:
            await self.report_failed(asked.tier, asked.output, error)
            return question.fall_back(error)
        self._session.record(*await self.priced(asked.tier, ModelCall(output=asked.output, tokens=tokens)))
        return answer

    async def report_failed(self, tier: TierName, output: str, error: ProviderError) -> None:
        """Record the usage of a call that failed."""
        if error.usage is not None:
            self._session.record(*await self.priced(tier, ModelCall(output=output, tokens=error.usage)))

    async def priced(self, tier: TierName, *calls: ModelCall) -> list[UsageReported]:
        """Return the usage of these calls, with the price if it is known (K4)."""
        model = self._tiers.name(tier)
        return [
            UsageReported(
                tier=tier,
                model=model,
                output=call.output,
                tokens=call.tokens,
                cost_usd=await self._price(model, call.tokens),
            )
            for call in calls
        ]
