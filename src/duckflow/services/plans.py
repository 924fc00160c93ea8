"""Plans for a goal: the model drafts one, and the program checks that it is consistent (B2)."""

from collections.abc import Iterable, Sequence

from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut, one_line
from duckflow.domain.work.objective import Evidence
from duckflow.domain.work.plan import Plan, PlanStep, Risk, find_cycle, new_id
from duckflow.prompts.questions import PLAN_ANSWER, question_request, spoken_text
from duckflow.prompts.templates import template
from duckflow.services.questions import Question

FEWEST_STEPS, MOST_STEPS = 3, 7
MOST_CRITERIA = 10

_NAME, _LINE, _TEXT = 100, 300, 2000


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


def draft_plan(goal: str, summary: str, evidence: Sequence[Evidence]) -> Question[PlanDraft, Plan]:
    """Ask for a plan that reaches the goal."""
    about = [f"Goal of the plan: {goal}", *spoken_text(summary)]
    return Question(
        kind="plan",
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
