"""Plan > PlanStep > Task: long work in parts. Statuses are computed from the tasks (B1, B4)."""

import secrets
from collections.abc import Hashable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter
from typing import Literal, TypeVar

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen, replace

WorkStatus = Literal["pending", "in_progress", "completed", "failed"]
PlanStatus = Literal["draft", "approved", "in_progress", "completed", "failed"]
Risk = Literal["low", "medium", "high"]

ONLY_LOOKED = "generate the next tasks of the step, or set it completed with plan_tool.update_step."
"""Advice for the model about a step whose tasks are complete but only read."""

Node = TypeVar("Node", bound=Hashable)


def new_id(kind: Literal["plan", "step", "task", "list"]) -> str:
    """Return a new id such as plan_1a2b3c4d."""
    return f"{kind}_{secrets.token_hex(4)}"


class Task(Frozen):
    """One call of an operation, to run in the background."""

    task_id: str
    operation: str
    args: dict[str, JsonValue] = Field(default_factory=dict)
    status: WorkStatus = "pending"
    result: str | None = None
    looks: bool = False
    """True if it only reads, so that it completes no step."""


class PlanStep(Frozen):
    """Part of a plan. `depends_on` names steps that must be complete before it starts."""

    step_id: str
    name: str
    description: str
    status: WorkStatus = "pending"
    depends_on: tuple[str, ...] = ()
    task_list: tuple[Task, ...] = ()

    @property
    def only_looked(self) -> bool:
        """True if all its tasks are complete and only read, which does not complete the step (B4)."""
        return bool(self.task_list) and all(one.looks and one.status == "completed" for one in self.task_list)


class Plan(Frozen):
    """A plan for a goal. `approved` is the user's answer; the status is computed from it and the steps."""

    plan_id: str
    name: str
    goal: str
    status: PlanStatus = "draft"
    approved: bool = False
    risk: Risk = "low"
    success_criteria: tuple[str, ...] = ()
    steps: tuple[PlanStep, ...] = ()

    def step(self, step_id: str) -> PlanStep | None:
        """Return the step with this id, if any."""
        return next((step for step in self.steps if step.step_id == step_id), None)

    @property
    def needs_consent(self) -> bool:
        """True if no step may start before the user has approved the plan (B7)."""
        return self.risk == "high" and not self.approved

    @property
    def current(self) -> PlanStep | None:
        """The current step: the one in progress, otherwise the first one that can start."""
        going = [step for step in self.steps if step.status == "in_progress"]
        return next(iter((*going, *self.ready)), None)

    @property
    def ready(self) -> tuple["PlanStep", ...]:
        """Steps that have not begun and depend on nothing that is open."""
        return tuple(step for step in self.steps if step.status == "pending" and not unmet(self, step))


class TaskList(Frozen):
    """Tasks that are running or ran in the background, for a step of a plan or for none."""

    list_id: str
    step_id: str | None = None
    tasks: tuple[Task, ...] = ()
    ended: bool = False


def unmet(plan: Plan, step: PlanStep) -> tuple[PlanStep, ...]:
    """Return the steps on which this one depends and that are not complete."""
    needed = (plan.step(step_id) for step_id in step.depends_on)
    return tuple(one for one in needed if one is not None and one.status != "completed")


def derive(plan: Plan) -> Plan:
    """Return the plan with all its statuses computed again (B4)."""
    steps = tuple(
        replace(step, status="in_progress" if step.only_looked else combined(step.task_list))
        if step.task_list
        else step
        for step in plan.steps
    )
    status = combined(steps)
    if status == "pending":
        status = "approved" if plan.approved else "draft"
    return replace(plan, steps=steps, status=status)


def find_cycle(depends_on: Mapping[Node, Sequence[Node]]) -> tuple[Node, ...]:
    """Return a cycle of dependencies, with its first member repeated at the end; empty without a cycle."""
    try:
        TopologicalSorter(depends_on).prepare()
    except CycleError as exc:
        return tuple(exc.args[1])
    return ()


def progress(plan: Plan) -> str:
    """Return the plan's progress as one line for the prompt (B5)."""
    done = sum(1 for step in plan.steps if step.status == "completed")
    failed = "".join(f", failed: {_named(step)}" for step in plan.steps if step.status == "failed")
    now = f", now: {_named(plan.current)}" if plan.current else ""
    beside = [_named(step) for step in plan.ready if step != plan.current]
    now += f", independent of it: {', '.join(beside)}" if beside else ""
    about = f"{plan.name} ({plan.plan_id}, {plan.status})"
    return f"{about}: {done} of {len(plan.steps)} steps complete{failed}{now}"


def _named(step: PlanStep) -> str:
    return f"{step.name} ({step.step_id})"


def combined(parts: Sequence[Task | PlanStep]) -> WorkStatus:
    """Return the status of a step or plan, computed from its parts."""
    found = {part.status for part in parts}
    if "failed" in found:
        return "failed"
    if found == {"completed"}:
        return "completed"
    return "in_progress" if found & {"in_progress", "completed"} else "pending"
