"""Counsel: what models are asked around a request, each question with its tier, and what to do without them.

A small model is slow to read and says yes to anything, so where the program can tell, it is not asked.
"""

from collections.abc import Coroutine, Sequence
from typing import TypeVar

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import TierName, Usage
from duckflow.domain.objective import (
    ContinuationContext,
    EvaluationCase,
    Evidence,
    ExecutionPlan,
    RequirementItem,
    SatisfactionEvaluation,
)
from duckflow.domain.ports import ModelClient
from duckflow.llm.tiers import Tiers
from duckflow.loops.thinking.spending import Spending
from duckflow.services.decide import ModelCall
from duckflow.services.execution_plans import (
    plain_continuation,
    plan_continuation_execution,
    plan_initial_execution,
)
from duckflow.services.failure_analysis import FailureAnalysis, analyze_execution_failure, give_second_opinion
from duckflow.services.missing_information import (
    MissingInfoAnalysis,
    extract_missing_information,
    plain_missing,
)
from duckflow.services.requirements import extract_task_requirements, plain_requirements
from duckflow.services.satisfaction import VerdictDraft, evaluate_task_satisfaction

T = TypeVar("T")


class Advisors:
    """Asks the six services and for a second opinion, and writes down what that used (SPEC K1)."""

    def __init__(self, tiers: Tiers, spending: Spending) -> None:
        self._tiers = tiers
        self._spending = spending

    async def small(self, tier: TierName) -> bool:
        """Whether the model of a tier is a small one."""
        return (await self._tiers.client(tier)).traits.small

    async def requirements(self, request: str, summary: str) -> tuple[RequirementItem, ...]:
        """What the request wants, in parts; the request itself where no model can tell."""
        client = await self._able("fast")
        if client is None:
            return plain_requirements(request)
        return await self._spent(
            "fast", "RequirementList", extract_task_requirements(client, request, summary)
        )

    async def verdict(self, case: EvaluationCase) -> VerdictDraft | None:
        """How far it is met, None where the answer can't be read. Raises ProviderError."""
        client = await self._tiers.client("evaluator")
        return await self._spent(
            "evaluator", "SatisfactionEvaluation", evaluate_task_satisfaction(client, case)
        )

    async def missing(self, case: EvaluationCase, evaluation: SatisfactionEvaluation) -> MissingInfoAnalysis:
        """What is lacking; what the verdict says where no model can tell."""
        client = await self._able("fast")
        if client is None:
            return plain_missing(evaluation)
        asked = extract_missing_information(client, case, evaluation)
        return await self._spent("fast", "MissingInfoAnalysis", asked)

    async def failure(
        self, request: str, failures: Sequence[str], evidence: Sequence[Evidence]
    ) -> FailureAnalysis | None:
        """Why these things failed, None where no model can tell."""
        client = await self._able("evaluator")
        if client is None or not failures:
            return None
        asked = analyze_execution_failure(client, request, failures, evidence)
        return await self._or_none("evaluator", "FailureAnalysis", asked)

    async def opinion(
        self, request: str, troubles: Sequence[str], evidence: Sequence[Evidence]
    ) -> FailureAnalysis | None:
        """How a model that did not do the work sees it, None where no model can tell."""
        client = await self._able("evaluator")
        if client is None:
            return None
        asked = give_second_opinion(client, request, troubles, evidence)
        return await self._or_none("evaluator", "FailureAnalysis", asked)

    async def first_plan(
        self, request: str, summary: str, evidence: Sequence[Evidence]
    ) -> ExecutionPlan | None:
        """How to go about a request, seen afresh; None where no model can tell."""
        client = await self._able("creative")
        if client is None:
            return None
        asked = plan_initial_execution(client, request, summary, evidence)
        return await self._or_none("creative", "PlanDraft", asked)

    async def next_plan(
        self, request: str, context: ContinuationContext, evidence: Sequence[Evidence]
    ) -> ExecutionPlan:
        """How the next attempt goes about it; what is missing first, where no model can tell."""
        client = await self._able("creative")
        if client is None:
            return plain_continuation(context)
        asked = plan_continuation_execution(client, request, context, evidence)
        return await self._or_none("creative", "PlanDraft", asked) or plain_continuation(context)

    async def _able(self, tier: TierName) -> ModelClient | None:
        """The model of a tier, None where it can't be had or is a small one."""
        try:
            client = await self._tiers.client(tier)
        except ProviderError:
            return None
        return None if client.traits.small else client

    async def _or_none(
        self, tier: TierName, output: str, asked: Coroutine[None, None, tuple[T, Usage]]
    ) -> T | None:
        try:
            return await self._spent(tier, output, asked)
        except ProviderError:
            return None

    async def _spent(self, tier: TierName, output: str, asked: Coroutine[None, None, tuple[T, Usage]]) -> T:
        """The answer, with what it used written down, also where there is none."""
        try:
            answer, tokens = await asked
        except ProviderError as error:
            if error.usage is not None:
                await self._spending.report(tier, ModelCall(output=output, tokens=error.usage))
            raise
        await self._spending.report(tier, ModelCall(output=output, tokens=tokens))
        return answer
