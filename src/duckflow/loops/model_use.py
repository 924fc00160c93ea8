"""The model a session thinks with: opened when needed, asked in a form it can bear, its use written down."""

from duckflow.domain.decision import Decision, Operation
from duckflow.domain.errors import ProviderError, ToolError
from duckflow.domain.model import ModelTraits, TierName
from duckflow.domain.ports import ModelClient
from duckflow.domain.state import AgentState
from duckflow.llm.tiers import Tiers
from duckflow.loops.rails import WorkspaceLook
from duckflow.loops.session import Session
from duckflow.loops.spending import Spending
from duckflow.prompts.budget import PromptFrame, check_rules
from duckflow.prompts.sections import Prompt
from duckflow.prompts.tokens import TokenCounter
from duckflow.services.decide import Call, Decided, Decider, FullDecider
from duckflow.services.decide_compact import CompactDecider, read_ahead
from duckflow.tools.catalogue import Catalogue


class ModelInUse:
    """Decides with one tier of a session's models."""

    tier: TierName = "creative"

    def __init__(
        self,
        session: Session,
        tiers: Tiers,
        catalogue: Catalogue,
        look: WorkspaceLook,
        frame: PromptFrame,
        spending: Spending,
    ) -> None:
        self._session = session
        self._tiers = tiers
        self._catalogue = catalogue
        self._look = look
        self._frame = frame
        self._spending = spending
        self._decider: Decider | None = None

    async def traits(self) -> ModelTraits:
        """What the model is; opens it."""
        return (await self._client()).traits

    async def warm(self) -> None:
        """Open the model, and let one that reads slowly read what never changes, before it is needed."""
        try:
            client = await self._client()
            if client.traits.small:
                await read_ahead(client, self._frame.rules)
        except ProviderError:
            return  # the first message meets the same error, and tells it

    async def decide(self, state: AgentState) -> Decided:
        """The next decision, its cost reported."""
        decided = await (await self._open_decider()).decide(state, self._session.show)
        await self.spent(*decided.calls)
        return decided

    async def preview(self, state: AgentState) -> Prompt:
        """What the model would be asked in this state; nothing is sent."""
        return await self._decider_for(await self._client()).preview(state)

    async def spent(self, *calls: Call) -> None:
        """Write down what calls used."""
        await self._spending.report(self.tier, *calls)

    async def _client(self) -> ModelClient:
        return await self._tiers.client(self.tier)

    async def _open_decider(self) -> Decider:
        if self._decider is None:
            client = await self._client()
            await check_rules(self._frame.rules, client.traits, TokenCounter(client))
            self._decider = self._decider_for(client)
        return self._decider

    def _decider_for(self, client: ModelClient) -> Decider:
        if client.traits.small:
            return CompactDecider(client, self._look, self._frame.rules, self._check)
        return FullDecider(client, operations_of(self._catalogue), self._frame, self._check)

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
