"""A plan in the user's words: for the question about it, and for the line that announces it (B7)."""

from collections.abc import Iterator
from textwrap import indent
from typing import Literal

from duckflow.domain.work.plan import Plan, PlanStep
from duckflow.i18n.catalogue import text


def plan_in_words(plan: Plan, change: Literal["proposed", "revised"] = "proposed") -> str:
    """Return the title, goal, status and success criteria of a plan, and its steps."""
    return "\n".join(_lines(plan, change))


def plan_facts(plan: Plan) -> Iterator[str]:
    """Yield the goal, status and success criteria of a plan, a line each."""
    yield text("plan.goal", goal=plan.goal)
    yield text("plan.status", status=text(f"plan.status_{plan.status}"))
    if plan.success_criteria:
        yield text("plan.criteria")
    yield from (f"   - {one}" for one in plan.success_criteria)


def step_title(plan: Plan, step: PlanStep) -> str:
    """Return the place and name of a step, and the places of the steps that must be complete before it."""
    places = {one.step_id: str(place) for place, one in enumerate(plan.steps, start=1)}
    needed = ", ".join(places[one] for one in step.depends_on if one in places)
    after = text("plan.after", steps=needed) if needed else ""
    return f"{places[step.step_id]}. {step.name}{after}"


def _lines(plan: Plan, change: str) -> Iterator[str]:
    yield text(f"plan.{change}", name=plan.name, risk=text(f"plan.risk_{plan.risk}"))
    yield from plan_facts(plan)
    for step in plan.steps:
        status = "" if step.status == "pending" else f" [{text(f'plan.status_{step.status}')}]"
        yield f"{step_title(plan, step)}{status}"
        # Indented, so that no line of a description looks like a step or a field of the plan.
        yield indent(step.description, "   ", lambda _: True)
