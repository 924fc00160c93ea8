"""The model a session thinks with: opened when needed, asked in a form it can bear, its use written down."""

from collections.abc import Awaitable, Callable

from duckflow.domain.decision import Decision, Operation
from duckflow.domain.errors import ProviderError, ToolError
from duckflow.domain.events import UsageReported
from duckflow.domain.model import ModelTraits, TierName, Usage
from duckflow.domain.ports import ModelClient
from duckflow.domain.state import AgentState
from duckflow.llm.tiers import Tiers
from duckflow.loops.rails import WorkspaceLook
from duckflow.loops.session import Session
from duckflow.services.decide import Call, Decided, Decider, FullDecider
from duckflow.services.decide_compact import CompactDecider, read_ahead
from duckflow.tools.catalogue import Catalogue

Price = Callable[[str, Usage], Awaitable[float | None]]


class ModelInUse:
    """Decides with one tier of a session's models."""

    tier: TierName = "creative"

    def __init__(
        self,
        session: Session,
        tiers: Tiers,
        catalogue: Catalogue,
        look: WorkspaceLook,
        rules: str,
        price: Price,
    ) -> None:
        self._session = session
        self._tiers = tiers
        self._catalogue = catalogue
        self._look = look
        self._rules = rules
        self._price = price
        self._decider: Decider | None = None

    async def traits(self) -> ModelTraits:
        """What the model is; opens it."""
        return (await self._client()).traits

    async def warm(self) -> None:
        """Open the model, and let one that reads slowly read what never changes, before it is needed."""
        try:
            client = await self._client()
            if client.traits.small:
                await read_ahead(client, self._rules)
        except ProviderError:
            return  # the first message meets the same error, and tells it

    async def decide(self, state: AgentState) -> Decided:
        """The next decision, its cost reported."""
        if self._decider is None:
            self._decider = self._decider_for(await self._client())
        decided = await self._decider.decide(state, self._session.show)
        await self.report(*decided.calls)
        return decided

    async def report(self, *calls: Call) -> None:
        """Write down what these calls used, and what they cost where a price is known."""
        model = self._tiers.name(self.tier)
        reports = [
            UsageReported(
                tier=self.tier,
                model=model,
                output=call.output,
                tokens=call.tokens,
                cost_usd=await self._price(model, call.tokens),
            )
            for call in calls
        ]
        self._session.record(*reports)

    async def _client(self) -> ModelClient:
        return await self._tiers.client(self.tier)

    def _decider_for(self, client: ModelClient) -> Decider:
        if client.traits.small:
            return CompactDecider(client, self._look, self._rules, self._check)
        return FullDecider(client, operations_of(self._catalogue), self._rules, self._check)

    def _check(self, decision: Decision) -> str | None:
        """An operation nobody knows is a bad answer, not a failed action (SPEC A6)."""
        for action in decision.actions:
            try:
                self._catalogue.get(action.operation)
            except ToolError as error:
                return str(error)
        return None


def operations_of(catalogue: Catalogue) -> tuple[Operation, ...]:
    """The catalogue as the prompts show it."""
    return tuple(
        Operation(name=tool.operation, line=tool.line, parameters=tool.schema()) for tool in catalogue.tools
    )
