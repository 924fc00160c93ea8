"""Plans as text. The labels are the names of fields, so that they are the same in every language."""

import json
from collections.abc import Iterable
from textwrap import indent

from duckflow.domain.text import cut
from duckflow.domain.work.plan import Plan, PlanStep, Task

_SHORT = 200


def plan_text(plan: Plan, *, whole: bool = False) -> str:
    """Return a plan as text. With `whole`, the arguments of its tasks are not cut."""
    lines = [
        f"{plan.plan_id}: {plan.name}",
        f"goal: {plan.goal}",
        f"status: {plan.status}",
        f"risk: {plan.risk}",
        "success_criteria:",
        *(f"- {text}" for text in plan.success_criteria),
        "steps:",
    ]
    for place, step in enumerate(plan.steps, start=1):
        lines += _step_lines(place, step, whole=whole)
    return "\n".join(lines) + "\n"


def task_text(task: Task, *, whole: bool = False) -> str:
    """Return a task as one line."""
    args = json.dumps(task.args, ensure_ascii=False)
    return f"{task.task_id} [{task.status}] {task.operation} {args if whole else cut(args, _SHORT)}"


def _step_lines(place: int, step: PlanStep, *, whole: bool) -> Iterable[str]:
    yield f"{place}. {step.step_id} [{step.status}] {step.name}"
    # Indented, so that no line of a description looks like a step or a field of the plan.
    yield indent(step.description, "   ", lambda _: True)
    if step.depends_on:
        yield f"   depends_on: {', '.join(step.depends_on)}"
    if step.task_list:
        yield "   task_list:"
        yield from (f"   - {task_text(task, whole=whole)}" for task in step.task_list)
