"""The model that makes decisions: opened when needed, and asked in a format that it understands."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import get_args

from duckflow.dialects.compact import Compact, read_ahead
from duckflow.dialects.dialect import DecisionResult, Dialect
from duckflow.dialects.drafts import DraftLimits
from duckflow.dialects.json_text import JsonText
from duckflow.dialects.native import Native
from duckflow.dialects.prompt import PromptFrame
from duckflow.domain.decision import Action, Decision, Operation, TaskProfile
from duckflow.domain.errors import PromptTooLong, ProviderError, ToolError, ToolsUnsupported
from duckflow.domain.events import ModelChanged, UsageReported
from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelClient, ModelTraits, TierName
from duckflow.domain.state import AgentState, Request, RulesUse
from duckflow.llm.tiers import Tiers
from duckflow.loops.session import SessionPart
from duckflow.loops.thinking.advisor import Advisor
from duckflow.loops.thinking.rules import RulesFiles, RulesTooLong
from duckflow.loops.thinking.small_models import WorkspaceLook
from duckflow.pacemaker.effort import effort_for_decision
from duckflow.prompts.layers import SandboxKind, sandbox_text
from duckflow.prompts.sections import RenderedPrompt
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.services.questions import SHORTER_PROMPTS
from duckflow.tools.catalogue import Catalogue

SIMPLE: tuple[TaskProfile, ...] = ("simple_question", "general_chat", "file_operation")
"""Kinds of tasks that a model of the fast tier can handle."""

LOW_COMPLEXITY = 0.3
"""Complexity from which on work counts as not simple."""


class Dialects:
    """Opens a dialect for each model: the format in which it is asked and answers."""

    def __init__(
        self, catalogue: Catalogue, look: WorkspaceLook, rules: RulesFiles, limits: DraftLimits, shell: Shell
    ) -> None:
        self._catalogue = catalogue
        self._look = look
        self._rules = rules
        self._limits = limits
        self._shell = shell
        self._opened: dict[tuple[ModelTraits, RulesUse, int, tuple[str, ...]], Dialect] = {}
        self._without_tools: set[str] = set()
        """Models whose servers have refused native tool calls."""

    async def open(self, client: ModelClient, state: AgentState) -> Dialect:
        """Return the dialect of a model. It remembers which conversation the model has seen."""
        await self._catalogue.source.ready()
        await asyncio.to_thread(self._rules.follow, {entry.path for entry in state.transcript if entry.path})
        use = state.rules_use
        known = client.traits, use, self._catalogue.source.revision, self._rules.now.files
        if known not in self._opened:
            self._opened[known] = await self._make(client, use)
        return self._opened[known]

    async def preview(self, client: ModelClient, state: AgentState, *, current: bool) -> RenderedPrompt:
        """Return the prompt for a state. With `current`, it is trimmed as for the model."""
        use = "cut" if state.rules_use == "whole" and self._rules.now.too_long else state.rules_use
        await self._catalogue.source.ready()
        known = client.traits, use, self._catalogue.source.revision, self._rules.now.files
        opened = self._opened.get(known) if current else None
        prompt = await (opened or await self._make(client, use)).preview(state)
        return replace(prompt, rules=self._rules.now.files if use != "none" else ())

    async def warm(self, client: ModelClient, use: RulesUse) -> None:
        """Let a small model, which reads slowly, read the fixed part of its prompts in advance."""
        if client.traits.small:
            await read_ahead(client, await self._rules.now.fit(client, use))

    def avoid_tools(self, name: str) -> None:
        """Ask this model without native tool calls from now on."""
        self._without_tools.add(name)
        self._opened.clear()

    def clear(self) -> None:
        """Forget all dialects, so that each is opened again when needed."""
        self._opened.clear()

    async def _make(self, client: ModelClient, use: RulesUse) -> Dialect:
        rules = await self._rules.now.fit(client, use)
        if client.traits.small:
            return Compact(client, self._look, rules, self._unknown_operations, self._limits)
        settings, kind = self._shell.settings, kind_of(await self._shell.sandbox())
        sandbox = sandbox_text(kind, network=settings.network, output=settings.max_output_bytes)
        frame = PromptFrame(rules=rules, sandbox=sandbox)
        native = client.traits.native_tools and client.traits.name not in self._without_tools
        dialect = Native if native else JsonText
        return dialect(client, operations_of(self._catalogue), frame, self._misfits)

    def _misfits(self, decision: Decision) -> Iterator[str]:
        """Yield unknown operations and invalid arguments. They make the whole answer unusable (A6)."""
        return _refusals(decision, self._catalogue.validate)

    def _unknown_operations(self, decision: Decision) -> Iterator[str]:
        """Yield unknown operations, but not arguments, which a small model completes later."""
        return _refusals(decision, lambda action: self._catalogue.get(action.operation))


@dataclass(eq=False)
class DecisionModel(SessionPart):
    """Makes decisions with the creative tier. Simple work goes to the fast tier."""

    _tiers: Tiers
    _advisor: Advisor
    _dialects: Dialects
    tier: TierName = "creative"
    """Tier of the current or last decision."""

    @property
    def alone(self) -> bool:
        """True if one model serves all tiers."""
        return len({self._tiers.name(tier) for tier in get_args(TierName)}) == 1

    async def traits(self) -> ModelTraits:
        """Open the model, and return its traits."""
        return (await self._client()).traits

    async def change(self, name: str) -> None:
        """Switch to another model. Raises UserError if it is not available."""
        used = await self._tiers.use(name)
        self._dialects.clear()
        self._session.record(ModelChanged(model=used))

    async def warm(self) -> None:
        """Open the model before it is needed, and let a small one read the fixed part of its prompts."""
        try:
            await self._dialects.warm(await self._client(), self._state.rules_use)
        except (ProviderError, RulesTooLong):
            return  # the first message gets the same error and reports it

    async def decide(self, state: AgentState) -> tuple[DecisionResult, list[UsageReported]]:
        """Return the next decision and its usage, to record together. Record the usage of a failed call."""
        self.tier = await self._tier_for(state)
        await self._session.pause()
        try:
            decided = await self._decide(state)
        except ProviderError as error:
            await self._advisor.report_failed(self.tier, "Decision", error)
            raise
        if decided.unused:
            self._session.notify("llm.left_out", names=", ".join(decided.unused))
        if state.background_runs and not self._state.background_runs and decided.decision.next_step == "done":
            # The report came meanwhile: the model must see it before the work can count as done.
            decided = replace(decided, decision=replace(decided.decision, next_step="continue"))
        return decided, await self._advisor.priced(self.tier, *decided.calls)

    async def preview(self, state: AgentState) -> RenderedPrompt:
        """Return the prompt for this state without sending it."""
        current = state is self._state
        return await self._dialects.preview(await self._client(), state, current=current)

    async def _decide(self, state: AgentState) -> DecisionResult:
        """Ask for a decision. Retry with a shorter prompt if it is too long, or without native tool calls."""
        effort = effort_for_decision(state)
        for _ in range(SHORTER_PROMPTS):
            dialect = await self._dialects.open(await self._client(), state)
            try:
                return await dialect.decide(state, self._session.show, effort)
            except ToolsUnsupported:
                self._dialects.avoid_tools((await self.traits()).name)
            except PromptTooLong as error:
                await self._advisor.report_failed(self.tier, "Decision", error)
                learned = await self.traits()
                window = f"{learned.window:,}"
                self._session.notify("llm.window_learned", model=learned.name, window=window)
        dialect = await self._dialects.open(await self._client(), state)
        return await dialect.decide(state, self._session.show, effort)

    async def _client(self) -> ModelClient:
        return await self._tiers.client(self.tier)

    async def _tier_for(self, state: AgentState) -> TierName:
        same = self._tiers.name("fast") == self._tiers.name("creative")
        if same or not self._tiers.by_task or choose_tier(state.request) == "creative":
            return "creative"
        creative, fast = await self._tiers.client("creative"), await self._tiers.client("fast")
        return "fast" if creative.traits.small == fast.traits.small else "creative"


def _refusals(decision: Decision, validate: Callable[[Action], object]) -> Iterator[str]:
    for action in decision.actions:
        try:
            validate(action)
        except ToolError as error:
            yield str(error)


def operations_of(catalogue: Catalogue) -> tuple[Operation, ...]:
    """Return the operations to show in prompts."""
    return tuple(
        Operation(name=tool.operation, line=tool.line, schema=tool.schema)
        for tool in catalogue.tools
        if not tool.by_program and not tool.hidden
    )


def kind_of(sandbox: Sandbox) -> SandboxKind:
    """Classify a sandbox for the prompt."""
    if sandbox.level in ("bubblewrap", "namespaces"):
        return "copy" if sandbox.copies else "folder"
    return sandbox.level


def choose_tier(request: Request | None) -> TierName:
    """Choose the tier for the next decision (K5): creative in doubt, in trouble or after failed attempts."""
    if request is None or request.limit is None or request.profile not in SIMPLE:
        return "creative"
    tried = bool(request.objective.attempts)
    troubled = bool(request.failing) or not request.sure or request.replanned or tried
    return "creative" if troubled or request.limit.complexity >= LOW_COMPLEXITY else "fast"
