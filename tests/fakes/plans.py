"""Plans for tests: steps a, b, c, … with what they depend on, and tasks by their statuses."""

from collections.abc import Sequence
from typing import Any

from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, PlanStep, Task, TaskList, WorkStatus, derive


def tasks(*statuses: WorkStatus, of: str = "x") -> tuple[Task, ...]:
    """Tasks with these statuses."""
    return tuple(
        Task(
            task_id=f"task_{of}{place}", operation="file_ops.read_file", args={"path": "a.py"}, status=status
        )
        for place, status in enumerate(statuses, start=1)
    )


def step(name: str, *needs: str, status: WorkStatus = "pending", task_list: Sequence[Task] = ()) -> PlanStep:
    """The step step_NAME, which needs the steps of these names."""
    return PlanStep(
        step_id=f"step_{name}",
        name=f"Step {name}",
        description=f"Do {name}.",
        status=status,
        depends_on=tuple(f"step_{needed}" for needed in needs),
        task_list=tuple(task_list),
    )


def plan(*steps: PlanStep, plan_id: str = "plan_1", **fields: Any) -> Plan:
    """A plan of these steps, its statuses derived."""
    made = {
        "name": "Make a game",
        "goal": "A game that runs",
        "success_criteria": ("`make run` exits with 0",),
    }
    return derive(Plan(plan_id=plan_id, steps=steps, **{**made, **fields}))


def planned(*plans: Plan, running: str | None = None, **fields: Any) -> AgentState:
    """A state with these plans, the first in hand; `running` is a step whose tasks run in the background."""
    task_list = TaskList(list_id="list_1", step_id=running, tasks=tasks("pending")) if running else None
    active = plans[0].plan_id if plans else None
    return AgentState(**{"plans": plans, "active_plan_id": active, "task_list": task_list, **fields})
