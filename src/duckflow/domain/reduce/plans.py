"""Applies events about plans and background tasks."""

from collections.abc import Iterable

from duckflow.domain.events import PlanChanged, TaskListStarted, TaskReported
from duckflow.domain.frozen import replace
from duckflow.domain.reduce.transcript import outdate_plans, tell
from duckflow.domain.state import AgentState
from duckflow.domain.text import head_and_tail
from duckflow.domain.work.plan import ONLY_LOOKED, Plan, PlanStep, Task, WorkStatus, derive

MOST_PLANS = 20
"""Number of plans to keep in state. The oldest are dropped first."""

_RESULT = 3000


def change_plan(state: AgentState, event: PlanChanged) -> AgentState:
    """Store a new version of a plan. A new plan becomes the active plan."""
    changed, active = event.plan.plan_id, state.active_plan_id
    plans = {plan.plan_id: plan for plan in state.plans}
    if event.change == "deleted":
        plans.pop(changed, None)
        active = None if active == changed else active
    else:
        plans[changed] = derive(event.plan)
        active = changed if event.change in ("proposed", "approved", "revised") else active
    if event.change in ("proposed", "revised", "deleted"):
        state = outdate_plans(state)
    return replace(state, plans=tuple(plans.values())[-MOST_PLANS:], active_plan_id=active)


def start_tasks(state: AgentState, event: TaskListStarted) -> AgentState:
    """Start a task list. If it belongs to a step of a plan, add it to that step."""

    def with_list(step: PlanStep) -> PlanStep:
        if step.step_id != event.task_list.step_id:
            return step
        return replace(step, task_list=event.task_list.tasks)

    plans = tuple(derive(replace(plan, steps=tuple(map(with_list, plan.steps)))) for plan in state.plans)
    return replace(state, task_list=event.task_list, plans=plans, list_granted=False, task_answer=None)


def end_tasks(state: AgentState, event: TaskReported) -> AgentState:
    """Mark the task list as ended, drop its open question, and pass the report to the model."""
    if state.task_list is None or state.task_list.list_id != event.list_id:
        return state
    approval = None if state.approval and state.approval.task_id else state.approval
    ended = replace(state, task_list=replace(state.task_list, ended=True), approval=approval)
    counts = f"{event.completed} completed, {event.failed} failed, {event.pending} not run"
    lines = [f"Task report ({event.status}; {counts}): {event.summary}", *event.failures]
    if event.next_action:
        lines.append(f"Recommended: {event.next_action}")
    if any(step.step_id == state.task_list.step_id and step.only_looked for step in _steps(state)):
        lines.append(f"The tasks only read, so their step is still open: {ONLY_LOOKED}")
    return tell(ended, "\n".join(lines))


def _steps(state: AgentState) -> Iterable[PlanStep]:
    return (step for plan in state.plans for step in plan.steps)


def set_task(state: AgentState, task_id: str, status: WorkStatus, result: str | None = None) -> AgentState:
    """Update the status of a task, and those of its step and plan."""

    def changed(task: Task) -> Task:
        if task.task_id != task_id:
            return task
        return replace(task, status=status, result=head_and_tail(result, _RESULT) if result else result)

    def with_tasks(plan: Plan) -> Plan:
        if not any(task.task_id == task_id for step in plan.steps for task in step.task_list):
            return plan
        steps = tuple(replace(step, task_list=tuple(map(changed, step.task_list))) for step in plan.steps)
        return derive(replace(plan, steps=steps))

    running = state.task_list
    if running is not None:
        running = replace(running, tasks=tuple(map(changed, running.tasks)))
    return replace(state, plans=tuple(map(with_tasks, state.plans)), task_list=running)
