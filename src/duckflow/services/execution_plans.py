"""How an attempt goes about a request: the first, and those after one that did not satisfy (SPEC J4, K1)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import Usage
from duckflow.domain.objective import ContinuationContext, Evidence, ExecutionPlan
from duckflow.domain.ports import ModelClient
from duckflow.domain.text import cut
from duckflow.llm.answers.structured import ask
from duckflow.prompts.continuation import SMALL_TOLD, TOLD, continuation_text
from duckflow.prompts.evaluation import execution_plan_request
from duckflow.services.plans import MOST_STEPS, PlanDraft
from duckflow.services.schemas import schema_of

MOST_CRITERIA = 5

_LINE, _STEP = 200, 300


async def plan_initial_execution(
    client: ModelClient, request: str, summary: str, evidence: Sequence[Evidence]
) -> tuple[ExecutionPlan, Usage]:
    """How the first attempt goes about it, for the creative tier. Raises ProviderError."""
    known = f"What was spoken of before:\n{summary}" if summary.strip() else ""
    draft, usage = await _ask(client, request, known, evidence, ())
    return _plan(draft), usage


async def plan_continuation_execution(
    client: ModelClient, request: str, context: ContinuationContext, evidence: Sequence[Evidence]
) -> tuple[ExecutionPlan, Usage]:
    """How the next attempt goes about it, otherwise than those before. Raises ProviderError."""
    known = continuation_text(context, SMALL_TOLD if client.traits.small else TOLD)
    tried = tuple(one.strategy for one in context.attempts if one.strategy)
    draft, usage = await _ask(client, request, known, evidence, tried)
    return with_lessons(_plan(draft), context), usage


def plain_continuation(context: ContinuationContext) -> ExecutionPlan:
    """The next attempt without asking a model: do what is missing, most important first."""
    first, *_ = (*context.alternatives, *context.improvements, *context.problems, "another way than before")
    steps = tuple(cut(text, _STEP) for text in (context.improvements or context.problems)[:MOST_STEPS])
    return with_lessons(ExecutionPlan(strategy=cut(first, _LINE), steps=steps), context)


def with_lessons(plan: ExecutionPlan, context: ContinuationContext) -> ExecutionPlan:
    """The plan with what earlier attempts taught: what holds, and what not to do again."""
    unavailable = tuple(f"not available: {text}" for text in context.unavailable)
    return replace(plan, constraints=context.limitations + unavailable, avoid=context.failed_approaches)


async def _ask(
    client: ModelClient, request: str, known: str, evidence: Sequence[Evidence], tried: Sequence[str]
) -> tuple[PlanDraft, Usage]:
    asked = replace(
        execution_plan_request(client.traits, request, known, evidence), answer_schema=schema_of(PlanDraft)
    )

    def check(draft: PlanDraft) -> str | None:
        return "; ".join(_problems(draft, tried)) or None

    answer = await ask(client, asked, PlanDraft, lambda _: None, check)
    return answer.value, answer.usage


def _problems(draft: PlanDraft, tried: Sequence[str]) -> Iterable[str]:
    if not draft.name.strip():
        yield "`name` is empty: it holds the strategy"
    if _plain(draft.name) in {_plain(strategy) for strategy in tried}:
        yield f"`name`: the strategy {cut(draft.name, _LINE)} has failed before, choose another"
    if not 1 <= len(draft.steps) <= MOST_STEPS:
        yield f"a plan has 1 to {MOST_STEPS} steps, not {len(draft.steps)}"
    for place, step in enumerate(draft.steps, start=1):
        if not (step.name.strip() or step.description.strip()):
            yield f"step {place} needs a name or a description"


def _plan(draft: PlanDraft) -> ExecutionPlan:
    """An attempt runs its steps in the order given, so what depends on what is of no further use."""
    steps = (": ".join(filter(None, (one.name.strip(), one.description.strip()))) for one in draft.steps)
    return ExecutionPlan(
        strategy=_line(draft.name, _LINE),
        steps=tuple(_line(step, _STEP) for step in steps),
        success_criteria=tuple(
            _line(text, _LINE) for text in draft.success_criteria[:MOST_CRITERIA] if text.strip()
        ),
        risk=draft.risk,
    )


def _plain(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _line(text: str, limit: int) -> str:
    return cut(" ".join(text.split()), limit)
