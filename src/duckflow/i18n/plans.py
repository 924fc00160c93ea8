"""A plan in the user's words: for the question about it, and for the line that announces it (B7)."""

from collections.abc import Iterator
from textwrap import indent
from typing import Literal

from duckflow.domain.work.plan import Plan
from duckflow.i18n.catalogue import text


def plan_in_words(plan: Plan, change: Literal["proposed", "revised"] = "proposed") -> str:
    """Return the title, goal, status and success criteria of a plan, and its steps."""
    return "\n".join(_lines(plan, change))


def _lines(plan: Plan, change: str) -> Iterator[str]:
    yield text(f"plan.{change}", name=plan.name, risk=text(f"plan.risk_{plan.risk}"))
    yield text("plan.goal", goal=plan.goal)
    yield text("plan.status", status=text(f"plan.status_{plan.status}"))
    if plan.success_criteria:
        yield text("plan.criteria")
    yield from (f"   - {one}" for one in plan.success_criteria)
    places = {step.step_id: str(place) for place, step in enumerate(plan.steps, start=1)}
    for step in plan.steps:
        needed = ", ".join(places[one] for one in step.depends_on if one in places)
        status = "" if step.status == "pending" else f" [{text(f'plan.status_{step.status}')}]"
        after = text("plan.after", steps=needed) if needed else ""
        yield f"{places[step.step_id]}. {step.name}{status}{after}"
        # Indented, so that no line of a description looks like a step or a field of the plan.
        yield indent(step.description, "   ", lambda _: True)
