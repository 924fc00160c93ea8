"""Tools task_tool.generate_list and task_loop: the tasks of a step, run in the background (B3, B4).

Each tool only reads the state. Effects come from `TaskRuns`, which starts and stops the lists.
"""

import dataclasses
import json
from collections.abc import Awaitable, Callable, Iterable, Sequence
from textwrap import indent
from typing import Annotated, Any, Protocol

from pydantic import Field, JsonValue, model_validator

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import ONLY_LOOKED, Plan, PlanStep, Task
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.services.task_lists import MOST_TASKS, TaskDraft, may_be_task, new_tasks
from duckflow.tools.arguments import one_to
from duckflow.tools.catalogue import Catalogue, NoArguments, Proposal, Tool, ToolResult
from duckflow.tools.plans.plan_search import (
    StateOwner,
    check_consent,
    check_may_start,
    check_not_under_way,
    drafted,
    find_step,
    task_text,
    with_step,
    work_tool,
)

RUN_LIST = "task_loop.run"
"""Reads nothing and changes nothing itself, but the user is asked about it if the model doubts it (A5)."""


class TaskRuns(Protocol):
    """Runs one list of tasks at a time in the background."""

    def start(self, tasks: tuple[Task, ...], step_id: str | None) -> str:
        """Start a task list, and return the list's id."""
        ...

    def cancel(self) -> bool:
        """Stop the running list. Return False if no list runs."""
        ...


class GenerateList(Frozen):
    """Arguments of task_tool.generate_list."""

    step_id: str = Field(description="the step of a plan")


class InlineTask(TaskDraft):
    """One task of a list that the model gives itself."""

    operation: str = Field(description="an operation in full, such as file_ops.write_file")
    args: dict[str, JsonValue] = Field(default_factory=dict, description="its arguments, complete")


class RunList(Frozen):
    """Arguments of task_loop.run, at least one of which is needed."""

    step_id: str | None = Field(
        default=None, description="a step, whose generated tasks run without task_list"
    )
    task_list: Annotated[tuple[InlineTask, ...] | None, one_to(MOST_TASKS)] = Field(
        default=None, description="the tasks themselves, of step_id or of no step"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "RunList":
        if self.step_id is None and self.task_list is None:
            raise ValueError("step_id or task_list is needed")
        return self


def task_tools(
    session: StateOwner,
    draft: Callable[[Plan, PlanStep], Awaitable[tuple[Task, ...]]],
    runs: TaskRuns,
    background: Catalogue,
) -> tuple[Tool[Any], ...]:
    """Return the task tools of a session. `background` has the operations that tasks may call."""

    async def generate(args: GenerateList, _access: Access) -> ToolResult:
        drafts = await drafted("tasks", draft(*_open_step(session.state, args.step_id)))
        tasks = _checked(drafts, background)
        # Find the step again, because the plan may have changed meanwhile.
        plan, step = _open_step(session.state, args.step_id)
        after = with_step(plan, replace(step, task_list=tasks))
        listed = "\n".join(map(task_text, tasks))
        text = (
            f"{len(tasks)} tasks for {step.step_id} ({step.name}), none has run yet:\n{listed}\n"
            f"Run them with task_loop.run, step_id {step.step_id}."
        )
        return ToolResult(text=text, events=(PlanChanged(plan=after, change="tasks"),))

    async def run(args: RunList, _access: Access) -> ToolResult:
        state = session.state
        if state.background_runs and state.task_list is not None:
            raise ToolError(
                f"{state.task_list.list_id} is still under way, and only one list runs at a time. "
                "Wait for its report, or stop it with task_loop.cancel."
            )
        given, step_id = new_tasks(args.task_list or ()), args.step_id
        tasks = _checked(_of_step(state, step_id, given) if step_id is not None else given, background)
        list_id = runs.start(tasks, step_id.strip() if step_id is not None else None)
        return ToolResult(
            text=f"{list_id} runs in the background: {len(tasks)} tasks. A report follows when it has ended."
        )

    async def propose_run(args: RunList, _workspace: Workspace) -> Proposal:
        given = new_tasks(args.task_list or ())
        step_id = args.step_id
        return Proposal(_in_words(given if step_id is None else _of_step(session.state, step_id, given)))

    async def cancel(_args: NoArguments, _access: Access) -> ToolResult:
        stopped = runs.cancel()
        return ToolResult(text="The list in the background is being stopped." if stopped else "No list runs.")

    generates = "write the tasks of the step step_id; runs nothing"
    runs_list = "run in the background the tasks of step_id, or task_list, a list of {operation, args}"
    return (
        work_tool("task_tool.generate_list", GenerateList, generate, generates),
        dataclasses.replace(work_tool(RUN_LIST, RunList, run, runs_list), propose=propose_run),
        work_tool("task_loop.cancel", NoArguments, cancel, "stop that list"),
    )


def _open_step(now: AgentState, step_id: str) -> tuple[Plan, PlanStep]:
    """Return a step that may get new tasks, and its plan."""
    plan, step = find_step(now, step_id)
    check_consent(plan)
    check_not_under_way(now, step)
    if step.status == "completed":
        raise ToolError(
            f"{step.step_id} is complete. For more work, open it again with plan_tool.update_step, status "
            "pending, or add a step with plan_tool.revise."
        )
    return plan, step


def _of_step(now: AgentState, step_id: str, given: tuple[Task, ...]) -> tuple[Task, ...]:
    """Return the tasks given for a step, otherwise its uncompleted ones, with their status set to pending."""
    plan, step = _open_step(now, step_id) if given else find_step(now, step_id)
    check_may_start(plan, step)
    if given:
        return given
    if not step.task_list:
        raise ToolError(
            f"{step.step_id} has no tasks. Call task_tool.generate_list for {step.step_id} first."
        )
    left = [task for task in step.task_list if task.status != "completed"]
    if not left:
        more = f" They only read: {ONLY_LOOKED}" if step.only_looked else ""
        raise ToolError(f"All tasks of {step.step_id} are complete.{more}")
    return tuple(replace(task, status="pending", result=None) for task in left)


def _in_words(tasks: Iterable[Task]) -> str:
    """Return the tasks with all their arguments, for the user."""
    lines: list[str] = []
    for place, task in enumerate(tasks, start=1):
        lines.append(f"{place}. {task.operation}")
        for name, value in task.args.items():
            said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            # Indented, so that no line of a content looks like a task.
            lines.append(indent(f"{name}: {said}", "   ", lambda _: True))
    return "\n".join(lines)


def _checked(tasks: Sequence[Task], background: Catalogue) -> tuple[Task, ...]:
    """Return the tasks with full operation names. Raise ToolError with all reasons if any can't be called."""
    checked: list[Task] = []
    problems: list[str] = []
    for place, task in enumerate(tasks, start=1):
        named, looks = task.operation, False
        try:
            if may_be_task(named):
                tool = background.validate(Action(operation=named, args=task.args))[0]
                named, looks = tool.operation, tool.effect in ("read", "fetch")
            if not may_be_task(named):
                problems.append(
                    f"Task {place}: {named} can't be a task: only the conversation plans and starts lists."
                )
        except ToolError as error:
            problems.append(f"Task {place}: {error}")
        checked.append(replace(task, operation=named, looks=looks))
    if problems:
        raise ToolError("\n".join(["The list can't be used; no task was run or kept.", *problems]))
    return tuple(checked)
