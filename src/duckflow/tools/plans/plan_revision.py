"""Operation plan_tool.revise: it replaces a plan's list of steps. Steps in both lists keep their progress.

A step with a new description is open again, without tasks.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated

from pydantic import Field, model_validator

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut, one_line
from duckflow.domain.work.plan import Plan, PlanStep, find_cycle, new_id
from duckflow.tools.arguments import one_to
from duckflow.tools.plans.plan_search import check_not_under_way

MOST_STEPS = 20

_NAME, _TEXT = 100, 2000


class StepChange(Frozen):
    """One step of the new list: a known one, kept or changed, or a new one."""

    step_id: str | None = Field(
        default=None, description="a step of the plan that is kept; none for a new one"
    )
    name: str | None = Field(default=None, description="a few words; a new step needs it")
    description: str | None = Field(default=None, description="what is done, and when it is done")
    depends_on: tuple[int | str, ...] | None = Field(
        default=None, description="steps that must be complete before: ids, or places in this list from 1"
    )


class RevisePlan(Frozen):
    """Arguments of plan_tool.revise."""

    plan_id: str | None = Field(default=None, description="the plan; the one in hand unless told")
    steps: Annotated[tuple[StepChange, ...] | None, one_to(MOST_STEPS)] = Field(
        default=None, description="all steps, in their new order"
    )
    goal: str | None = Field(default=None, description="what the plan must reach now")

    @model_validator(mode="after")
    def _something(self) -> "RevisePlan":
        if self.steps is None and not (self.goal and self.goal.strip()):
            raise ValueError("steps or goal is needed")
        return self


def revised(state: AgentState, plan: Plan, args: RevisePlan, fresh: Plan | None) -> Plan:
    """Return the revised plan, which needs a new approval.

    `fresh` is a newly drafted plan, for a call without steps.
    """
    if fresh is not None:
        check_not_under_way(state, *plan.steps)
        return replace(fresh, plan_id=plan.plan_id, approved=False)
    steps = _steps(plan, args.steps or ())
    kept = {step.step_id for step in steps}
    check_not_under_way(state, *(step for step in plan.steps if step.step_id not in kept))
    goal = one_line(args.goal or "", _TEXT) or plan.goal
    return replace(plan, steps=steps, goal=goal, approved=False)


def _steps(plan: Plan, changes: Sequence[StepChange]) -> tuple[PlanStep, ...]:
    ids = [new_id("step") if one.step_id is None else one.step_id.strip() for one in changes]
    twice = {one for one in ids if ids.count(one) > 1}
    if twice:
        raise ToolError(f"A step can be in the list once only: {', '.join(sorted(twice))}.")
    names = {str(place): step_id for place, step_id in enumerate(ids, start=1)}
    names |= {step_id: step_id for step_id in ids}
    steps = tuple(_step(plan, change, one, names) for change, one in zip(changes, ids, strict=True))
    circle = find_cycle({step.step_id: step.depends_on for step in steps})
    if circle:
        raise ToolError(f"Steps depend on each other in a circle: {', '.join(circle)}.")
    return steps


def _step(plan: Plan, change: StepChange, step_id: str, names: Mapping[str, str]) -> PlanStep:
    """Return one step. `names` maps ids, and positions in the new list, to ids."""
    name = one_line(change.name or "", _NAME)
    description = cut((change.description or "").strip(), _TEXT)
    before = plan.step(step_id)
    if before is None:
        if change.step_id is not None:
            known = ", ".join(f"{one.step_id} ({one.name})" for one in plan.steps)
            raise ToolError(f"{plan.plan_id} has no step {step_id[:100]}. Known: {known}.")
        if not name or not description:
            raise ToolError("A new step needs a name and a description.")
        before = PlanStep(step_id=step_id, name=name, description=description)
    if description and description != before.description:  # other work: what was done does not complete it
        before = replace(before, status="pending", task_list=())
    if change.depends_on is None:
        needed = [one for one in before.depends_on if one in names]
    else:
        needed = [str(one).strip() for one in change.depends_on]
    if unknown := [one for one in needed if one not in names]:
        raise ToolError(
            f"depends_on names {unknown[0][:100]}, which is not in the new list: "
            f"give places from 1 to {len(names) // 2}, or ids of steps that are kept."
        )
    return replace(
        before,
        name=name or before.name,
        description=description or before.description,
        depends_on=tuple(dict.fromkeys(names[one] for one in needed)),
    )
