"""Find plans and steps, show them as text, and check whether steps may start."""

import json
from collections.abc import Awaitable, Callable
from textwrap import indent
from typing import Protocol, TypeVar

from duckflow.domain.errors import ProviderError, ToolError
from duckflow.domain.frozen import replace
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.domain.work.plan import Plan, PlanStep, Task, derive, unmet
from duckflow.i18n.catalogue import text
from duckflow.safety.files.access import Access
from duckflow.tools.catalogue import Arguments, Tool, ToolResult

T = TypeVar("T")
_SHOWN, _SHORT = 100, 200


class StateOwner(Protocol):
    """The session, whose state changes while tools run."""

    @property
    def state(self) -> AgentState:
        """Return the current state."""
        ...


def work_tool(
    operation: str,
    args: type[Arguments],
    run: Callable[[Arguments, Access], Awaitable[ToolResult]],
    summary: str,
) -> Tool[Arguments]:
    """Return a tool that touches no file. Each task that it starts is judged separately."""
    return Tool(operation=operation, args=args, summary=summary, effect="read", run=run)


def find_plan(state: AgentState, plan_id: str | None) -> Plan:
    """Return the plan with this id, or without an id the active one."""
    if plan_id is None:
        if state.active_plan is None:
            raise ToolError(f"No plan is in hand. {_known_plans(state)}")
        return state.active_plan
    found = next((plan for plan in state.plans if plan.plan_id == plan_id.strip()), None)
    if found is None:
        raise ToolError(f"There is no plan {plan_id[:_SHOWN]}. {_known_plans(state)}")
    return found


def find_step(state: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    """Return the step with this id, and its plan."""
    for plan in state.plans:
        step = plan.step(step_id.strip())
        if step is not None:
            return plan, step
    raise ToolError(f"There is no step {step_id[:_SHOWN]}. {_known_steps(state)}")


def with_step(plan: Plan, changed: PlanStep) -> Plan:
    """Return the plan with one of its steps changed."""
    steps = tuple(changed if one.step_id == changed.step_id else one for one in plan.steps)
    return derive(replace(plan, steps=steps))


def check_consent(plan: Plan) -> None:
    """Refuse to start a plan that the user has to approve first (B7)."""
    if plan.needs_consent:
        raise ToolError(
            f"{plan.plan_id} has high risk and the user has not approved it: no step of it can start. "
            "Call plan_tool.approve, which asks the user.",
            "reason.plan_consent",
        )


def check_may_start(plan: Plan, step: PlanStep) -> None:
    """Refuse a step that can't start yet (B4, B7)."""
    check_consent(plan)
    missing = unmet(plan, step)
    if missing:
        listed = ", ".join(f"{one.step_id} ({one.name}: {one.status})" for one in missing)
        names = text("risk.and").join(one.name for one in missing)
        raise ToolError(
            f"{step.step_id} can't start before what it depends on is complete: {listed}.",
            "reason.plan_order",
            steps=names,
        )


def check_not_under_way(state: AgentState, *steps: PlanStep) -> None:
    """Refuse to change steps whose tasks are running in the background."""
    running = state.task_list.step_id if state.task_list and state.background_runs else None
    if running and any(step.step_id == running for step in steps):
        raise ToolError(
            f"The tasks of {running} run in the background now. "
            "Wait for their report, or stop them with task_loop.cancel."
        )


async def drafted(what: str, asked: Awaitable[T]) -> T:
    """Return a model's draft. Convert failures to ToolError, so that the turn continues."""
    try:
        return await asked
    except ProviderError as exc:
        raise ToolError(f"No {what} could be drafted: {text(exc.key, **exc.values)}") from exc


def _known_plans(state: AgentState) -> str:
    if not state.plans:
        return "There are no plans yet: plan_tool.propose makes one."
    return f"Known: {', '.join(f'{plan.plan_id} ({plan.name})' for plan in state.plans)}."


def _known_steps(state: AgentState) -> str:
    shown = [state.active_plan] if state.active_plan else state.plans
    steps = [f"{step.step_id} ({step.name})" for plan in shown for step in plan.steps]
    return f"Known: {', '.join(steps)}." if steps else _known_plans(state)


def plan_text(plan: Plan) -> str:
    """Return a plan as text for a model."""
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
        lines.append(f"{place}. {step.step_id} [{step.status}] {step.name}")
        # Indented, so that no line of a description looks like a step or a field of the plan.
        lines.append(indent(step.description, "   ", lambda _: True))
        if step.depends_on:
            lines.append(f"   depends_on: {', '.join(step.depends_on)}")
        if step.task_list:
            lines += ["   task_list:", *(f"   - {task_text(task)}" for task in step.task_list)]
    return "\n".join(lines) + "\n"


def task_text(task: Task) -> str:
    """Return a task as one line."""
    args = cut(json.dumps(task.args, ensure_ascii=False), _SHORT)
    return f"{task.task_id} [{task.status}] {task.operation} {args}"
