"""The model a session thinks with: opened when needed, asked in a form it can bear, its use written down."""

from pydantic import JsonValue

from duckflow.config.settings import PromptSettings
from duckflow.dialects.compact import Compact, read_ahead
from duckflow.dialects.dialect import DecisionResult, Dialect
from duckflow.dialects.drafts import DraftLimits
from duckflow.dialects.json_text import JsonText
from duckflow.dialects.native import Native
from duckflow.domain.decision import Decision, Operation, TaskProfile
from duckflow.domain.errors import PromptTooLong, ProviderError, ToolError
from duckflow.domain.events import ErrorReported, ModelChanged, UsageReported
from duckflow.domain.model import ModelClient, ModelTraits, TierName
from duckflow.domain.state import AgentState, Request, RulesUse
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import Session
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.rules import Rules
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.pacemaker.effort import effort_for_decision
from duckflow.prompts.budget import PromptFrame, RulesTooLong
from duckflow.prompts.sections import RenderedPrompt
from duckflow.services.questions import SHORTER_PROMPTS
from duckflow.tools.catalogue import Catalogue

SIMPLE: tuple[TaskProfile, ...] = ("simple_question", "general_chat", "file_operation")
"""Profiles that do not need the best model there is."""

LOW_COMPLEXITY = 0.3
"""From this complexity on, work is not simple."""


class ModelInUse:
    """Decides with the creative tier of a session's models, and leaves simple work to the fast one."""

    tier: TierName = "creative"
    """The tier that decides, or did last."""

    def __init__(
        self,
        session: Session,
        tiers: Tiers,
        catalogue: Catalogue,
        look: WorkspaceLook,
        rules: Rules,
        budgets: PromptSettings,
        advisor: Advisor,
        limits: DraftLimits,
    ) -> None:
        self._session = session
        self._tiers = tiers
        self._catalogue = catalogue
        self._look = look
        self._rules = rules
        self._budgets = budgets
        self._advisor = advisor
        self._limits = limits
        self._dialects: dict[tuple[ModelTraits, RulesUse, int], Dialect] = {}

    async def traits(self) -> ModelTraits:
        """What the model is; opens it."""
        return (await self._client()).traits

    async def change(self, name: str) -> None:
        """Think with another model from now on. Raises UserError if it can't be had."""
        await self._tiers.use(name)
        self._dialects.clear()
        self._session.record(ModelChanged(model=name))

    async def warm(self) -> None:
        """Open the model, and let one that reads slowly read what never changes, before it is needed."""
        try:
            client = await self._client()
            if client.traits.small:
                await read_ahead(client, await self._rules.fit(client, self._session.state.rules_use))
        except (ProviderError, RulesTooLong):
            return  # the first message meets the same error, and tells it

    async def decide(self, state: AgentState) -> tuple[DecisionResult, list[UsageReported]]:
        """The next decision and what it cost, to be recorded together; a failure is reported here."""
        self.tier = await self._tier_for(state)
        await self._session.pause()
        try:
            decided = await self._decide(state)
        except ProviderError as error:
            await self._advisor.report_failed(self.tier, "Decision", error)
            raise
        return decided, await self._advisor.priced(self.tier, *decided.calls)

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """What the model would be asked in this state; nothing is sent."""
        use = "cut" if state.rules_use == "whole" and self._rules.too_long else state.rules_use
        client = await self._client()
        await self._catalogue.ready()
        known = self._dialects.get((client.traits, use, self._catalogue.revision))
        if known and state is self._session.state:
            return await known.preview(state)  # what it left out so far is left out here, too
        return await self._dialect_for(client, await self._rules.fit(client, use)).preview(state)

    async def _decide(self, state: AgentState) -> DecisionResult:
        """The decision. After one that was too long, a prompt is made for the window that the error told."""
        effort = effort_for_decision(state)
        for _ in range(SHORTER_PROMPTS):
            dialect = await self._open_dialect(state.rules_use)
            try:
                return await dialect.decide(state, self._session.show, effort)
            except PromptTooLong as error:
                await self._advisor.report_failed(self.tier, "Decision", error)
                learned = await self.traits()
                values: dict[str, JsonValue] = {"model": learned.name, "window": f"{learned.window:,}"}
                self._session.record(ErrorReported(key="llm.window_learned", values=values, notice=True))
        return await (await self._open_dialect(state.rules_use)).decide(state, self._session.show, effort)

    async def _client(self) -> ModelClient:
        return await self._tiers.client(self.tier)

    async def _open_dialect(self, use: RulesUse) -> Dialect:
        await self._catalogue.ready()
        client = await self._client()
        known = client.traits, use, self._catalogue.revision
        if known not in self._dialects:
            self._dialects[known] = self._dialect_for(client, await self._rules.fit(client, use))
        return self._dialects[known]

    async def _tier_for(self, state: AgentState) -> TierName:
        """The fast tier if it is another model, the work is simple, and it is asked in the same form."""
        same = self._tiers.name("fast") == self._tiers.name("creative")
        if same or not self._tiers.by_task or choose_tier(state.request) == "creative":
            return "creative"
        creative, fast = await self._tiers.client("creative"), await self._tiers.client("fast")
        return "fast" if creative.traits.small == fast.traits.small else "creative"

    def _dialect_for(self, client: ModelClient, rules: str) -> Dialect:
        if client.traits.small:
            return Compact(client, self._look, rules, self._check, self._limits)
        frame = PromptFrame(rules=rules, budgets=self._budgets)
        dialect = Native if client.traits.native_tools else JsonText
        return dialect(client, operations_of(self._catalogue), frame, self._check)

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
        Operation(name=tool.operation, line=tool.line, schema=tool.schema)
        for tool in catalogue.tools
        if not tool.by_program and not tool.hidden
    )


def choose_tier(request: Request | None) -> TierName:
    """The tier that decides next (SPEC K5). Nothing known, trouble, or a second attempt: the creative one."""
    if request is None or request.limit is None or request.profile not in SIMPLE:
        return "creative"
    tried = bool(request.objective.attempts)
    troubled = bool(request.failing) or not request.sure or request.replanned or tried
    return "creative" if troubled or request.limit.complexity >= LOW_COMPLEXITY else "fast"
