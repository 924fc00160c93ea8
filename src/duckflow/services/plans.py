"""Plans that a model drafts and the program checks: for a goal (B2), and for an attempt at a request (J4)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import cut, letters_of, one_line
from duckflow.domain.work.objective import ContinuationContext, Evidence, ExecutionPlan
from duckflow.domain.work.plan import Plan, PlanStep, Risk, find_cycle, new_id
from duckflow.prompts.continuation import SMALL_TOLD, TOLD, continuation_text
from duckflow.prompts.questions import PLAN_ANSWER, question_request, spoken_text
from duckflow.prompts.templates import template
from duckflow.services.questions import AskedModel, Question

FEWEST_STEPS, MOST_STEPS = 3, 7
MOST_CRITERIA = 10

_NAME, _LINE, _TEXT = 100, 300, 2000
_ATTEMPT_CRITERIA, _SHORT_LINE, _STEP = 5, 200, 300
_SEEN = 3_000
"""Token limit of the evidence for the plan of a further attempt, because the verdict sums it up."""


class StepDraft(Frozen):
    """A step as a model writes it. `depends_on` names steps by their place, from 1."""

    name: str
    description: str
    depends_on: tuple[int, ...] = ()


class PlanDraft(Frozen):
    """A plan as a model writes it."""

    name: str
    goal: str = ""
    risk: Risk
    success_criteria: tuple[str, ...]
    steps: tuple[StepDraft, ...]
    avoid: tuple[str, ...] = ()


def draft_plan(goal: str, summary: str, evidence: Sequence[Evidence]) -> Question[PlanDraft, Plan]:
    """Ask for a plan that reaches the goal."""
    about = [f"Goal of the plan: {goal}", *spoken_text(summary)]
    return Question(
        asked=AskedModel(tier="creative", output="PlanDraft", effort="high", small=True),
        prompt=lambda traits: question_request(
            "PlanDraft", traits, template("plan"), about, evidence=evidence, most_answer=PLAN_ANSWER
        ),
        shape=PlanDraft,
        check=_problems,
        read=lambda draft: _plan(draft, goal),
        bound=False,
    )


def _problems(draft: PlanDraft) -> Iterable[str]:
    count = len(draft.steps)
    if not FEWEST_STEPS <= count <= MOST_STEPS:
        yield f"a plan has {FEWEST_STEPS} to {MOST_STEPS} steps, not {count}"
    if not draft.name.strip():
        yield "`name` is empty"
    if not any(text.strip() for text in draft.success_criteria):
        yield "`success_criteria` needs at least one that can be measured"
    for place, step in enumerate(draft.steps, start=1):
        if not step.name.strip() or not step.description.strip():
            yield f"step {place} needs a name and a description"
        for wrong in (one for one in step.depends_on if not 1 <= one <= count):
            yield f"step {place} depends on {wrong}, but there are only steps 1 to {count}"
    circle = find_cycle({place: step.depends_on for place, step in enumerate(draft.steps, start=1)})
    if circle:
        yield f"steps depend on each other in a circle: {', '.join(map(str, circle))}"


def _plan(draft: PlanDraft, goal: str) -> Plan:
    ids = [new_id("step") for _ in draft.steps]
    steps = tuple(
        PlanStep(
            step_id=ids[place],
            name=one_line(step.name, _NAME),
            description=cut(step.description.strip(), _TEXT),
            depends_on=tuple(ids[needed - 1] for needed in dict.fromkeys(step.depends_on)),
        )
        for place, step in enumerate(draft.steps)
    )
    criteria = [one_line(text, _LINE) for text in draft.success_criteria if text.strip()]
    return Plan(
        plan_id=new_id("plan"),
        name=one_line(draft.name, _NAME),
        goal=one_line(draft.goal, _TEXT) or one_line(goal, _TEXT),
        risk=draft.risk,
        success_criteria=tuple(criteria[:MOST_CRITERIA]),
        steps=steps,
    )


def plan_initial_execution(
    request: str, summary: str, evidence: Sequence[Evidence]
) -> Question[PlanDraft, ExecutionPlan | None]:
    """Ask for the plan of the first attempt; the answer is None if no model answers."""
    about, system = spoken_text(summary), template("execution_plan")
    return Question(
        asked=AskedModel(tier="creative", output="PlanDraft", effort="high"),
        prompt=lambda traits: question_request("PlanDraft", traits, system, about, request, evidence),
        shape=PlanDraft,
        check=lambda draft: _attempt_problems(draft, ()),
        read=_attempt_plan,
        otherwise=lambda: None,
    )


def plan_continuation_execution(
    request: str, context: ContinuationContext, evidence: Sequence[Evidence]
) -> Question[PlanDraft, ExecutionPlan]:
    """Ask for the plan of the next attempt, briefly. Without an answer, do what is missing first."""

    def prompt(traits: ModelTraits) -> ModelRequest:
        known = continuation_text(context, SMALL_TOLD if traits.small else TOLD)
        return question_request(
            "PlanDraft", traits, template("execution_plan"), [known], request, evidence, most_evidence=_SEEN
        )

    return Question(
        asked=AskedModel(tier="creative", output="PlanDraft"),
        prompt=prompt,
        shape=PlanDraft,
        check=lambda draft: _attempt_problems(draft, context.failed_approaches),
        read=lambda draft: with_lessons(_attempt_plan(draft), context),
        otherwise=lambda: plain_continuation(context),
    )


def plain_continuation(context: ContinuationContext) -> ExecutionPlan:
    """Return a plan for the next attempt without asking a model: do what is missing, most important first."""
    first, *_ = (*context.alternatives, *context.improvements, *context.problems, "another way than before")
    steps = tuple(cut(text, _STEP) for text in (context.improvements or context.problems)[:MOST_STEPS])
    return with_lessons(ExecutionPlan(strategy=cut(first, _SHORT_LINE), steps=steps, plain=True), context)


def with_lessons(plan: ExecutionPlan, context: ContinuationContext) -> ExecutionPlan:
    """Add the lessons of earlier attempts to a plan: its constraints, and approaches to avoid."""
    refused = tuple(f"refused by the rules: {text}" for text in context.unavailable)
    return replace(
        plan, constraints=context.limitations + refused, avoid=plan.avoid + context.failed_approaches
    )


def _attempt_problems(draft: PlanDraft, tried: Sequence[str]) -> Iterable[str]:
    if not draft.name.strip():
        yield "`name` is empty: it holds the strategy"
    if letters_of(draft.name) in {letters_of(strategy) for strategy in tried}:
        yield f"`name`: the strategy {cut(draft.name, _SHORT_LINE)} is not wanted any more, choose another"
    if not 1 <= len(draft.steps) <= MOST_STEPS:
        yield f"a plan has 1 to {MOST_STEPS} steps, not {len(draft.steps)}"
    for place, step in enumerate(draft.steps, start=1):
        if not (step.name.strip() or step.description.strip()):
            yield f"step {place} needs a name or a description"


def _attempt_plan(draft: PlanDraft) -> ExecutionPlan:
    """Convert a draft. Attempts run their steps in order, so dependencies between steps are dropped."""
    steps = (": ".join(filter(None, (one.name.strip(), one.description.strip()))) for one in draft.steps)
    return ExecutionPlan(
        strategy=one_line(draft.name, _SHORT_LINE),
        steps=tuple(one_line(step, _STEP) for step in steps),
        success_criteria=tuple(
            one_line(text, _SHORT_LINE) for text in draft.success_criteria[:_ATTEMPT_CRITERIA] if text.strip()
        ),
        risk=draft.risk,
        avoid=tuple(one_line(text, _SHORT_LINE) for text in draft.avoid[:_ATTEMPT_CRITERIA] if text.strip()),
    )
