"""Plans of attempts at a request: the first attempt, and those after an unsatisfactory result (J4, K1)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import cut, letters_of, one_line
from duckflow.domain.work.objective import ContinuationContext, Evidence, ExecutionPlan
from duckflow.prompts.continuation import SMALL_TOLD, TOLD, continuation_text
from duckflow.prompts.questions import question_request, spoken_text
from duckflow.prompts.templates import template
from duckflow.services.plans import MOST_STEPS, PlanDraft
from duckflow.services.questions import Question

MOST_CRITERIA = 5

_LINE, _STEP = 200, 300


def plan_initial_execution(
    request: str, summary: str, evidence: Sequence[Evidence]
) -> Question[PlanDraft, ExecutionPlan | None]:
    """Ask for the plan of the first attempt; the answer is None if no model can tell."""
    about, system = spoken_text(summary), template("execution_plan")
    return Question(
        kind="first_plan",
        prompt=lambda traits: question_request("PlanDraft", traits, system, about, request, evidence),
        shape=PlanDraft,
        check=lambda draft: _problems(draft, ()),
        read=_plan,
        otherwise=lambda: None,
    )


def plan_continuation_execution(
    request: str, context: ContinuationContext, evidence: Sequence[Evidence]
) -> Question[PlanDraft, ExecutionPlan]:
    """Ask for a different plan for the next attempt. Without an answer, do what is missing first."""
    tried = tuple(one.strategy for one in context.attempts if one.strategy)

    def prompt(traits: ModelTraits) -> ModelRequest:
        known = continuation_text(context, SMALL_TOLD if traits.small else TOLD)
        return question_request("PlanDraft", traits, template("execution_plan"), [known], request, evidence)

    return Question(
        kind="next_plan",
        prompt=prompt,
        shape=PlanDraft,
        check=lambda draft: _problems(draft, tried),
        read=lambda draft: with_lessons(_plan(draft), context),
        otherwise=lambda: plain_continuation(context),
    )


def plain_continuation(context: ContinuationContext) -> ExecutionPlan:
    """Return a plan for the next attempt without asking a model: do what is missing, most important first."""
    first, *_ = (*context.alternatives, *context.improvements, *context.problems, "another way than before")
    steps = tuple(cut(text, _STEP) for text in (context.improvements or context.problems)[:MOST_STEPS])
    return with_lessons(ExecutionPlan(strategy=cut(first, _LINE), steps=steps), context)


def with_lessons(plan: ExecutionPlan, context: ContinuationContext) -> ExecutionPlan:
    """Add the lessons of earlier attempts to a plan: its constraints, and approaches to avoid."""
    unavailable = tuple(f"not available: {text}" for text in context.unavailable)
    return replace(plan, constraints=context.limitations + unavailable, avoid=context.failed_approaches)


def _problems(draft: PlanDraft, tried: Sequence[str]) -> Iterable[str]:
    if not draft.name.strip():
        yield "`name` is empty: it holds the strategy"
    if letters_of(draft.name) in {letters_of(strategy) for strategy in tried}:
        yield f"`name`: the strategy {cut(draft.name, _LINE)} has failed before, choose another"
    if not 1 <= len(draft.steps) <= MOST_STEPS:
        yield f"a plan has 1 to {MOST_STEPS} steps, not {len(draft.steps)}"
    for place, step in enumerate(draft.steps, start=1):
        if not (step.name.strip() or step.description.strip()):
            yield f"step {place} needs a name or a description"


def _plan(draft: PlanDraft) -> ExecutionPlan:
    """Convert a draft. Attempts run their steps in order, so dependencies between steps are dropped."""
    steps = (": ".join(filter(None, (one.name.strip(), one.description.strip()))) for one in draft.steps)
    return ExecutionPlan(
        strategy=one_line(draft.name, _LINE),
        steps=tuple(one_line(step, _STEP) for step in steps),
        success_criteria=tuple(
            one_line(text, _LINE) for text in draft.success_criteria[:MOST_CRITERIA] if text.strip()
        ),
        risk=draft.risk,
    )
