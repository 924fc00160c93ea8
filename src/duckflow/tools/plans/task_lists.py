"""Tools task_tool.generate_list and task_loop: the tasks of a step, run in the background (B3, B4).

Each tool reads the state. Only `start` and `cancel`, which belong to the task loop, have effects.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated

from pydantic import Field, JsonValue, model_validator

from duckflow.domain.decision import Action
from duckflow.domain.errors import ToolError
from duckflow.domain.events import PlanChanged
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, PlanStep, Task, derive
from duckflow.safety.files.access import Access
from duckflow.services.task_lists import MOST_TASKS, TaskDraft, may_be_task, new_tasks
from duckflow.tools.arguments import one_to
from duckflow.tools.catalogue import Catalogue, NoArguments, Tool, ToolResult
from duckflow.tools.plans.plan_search import (
    check_consent,
    check_may_start,
    check_not_under_way,
    drafted,
    find_step,
)
from duckflow.tools.plans.plan_text import task_text

State = Callable[[], AgentState]
DraftTasks = Callable[[Plan, PlanStep], Awaitable[tuple[Task, ...]]]
Start = Callable[[tuple[Task, ...], str | None], str]
Cancel = Callable[[], bool]


class GenerateList(Frozen):
    """Arguments of task_tool.generate_list."""

    step_id: str = Field(description="the step of a plan")


class InlineTask(TaskDraft):
    """One task of a list that the model gives itself."""

    operation: str = Field(description="an operation in full, such as file_ops.write_file")
    args: dict[str, JsonValue] = Field(default_factory=dict, description="its arguments, complete")


class RunList(Frozen):
    """Arguments of task_loop.run, exactly one of which is needed."""

    step_id: str | None = Field(default=None, description="a step whose tasks were generated")
    task_list: Annotated[tuple[InlineTask, ...] | None, one_to(MOST_TASKS)] = Field(
        default=None, description="or the tasks themselves"
    )

    @model_validator(mode="after")
    def _one_of_two(self) -> "RunList":
        if (self.step_id is None) == (self.task_list is None):
            raise ValueError("either step_id or task_list is needed, not both")
        return self


def task_tools(
    state: State, draft: DraftTasks, start: Start, cancel: Cancel, background: Catalogue
) -> tuple[Tool, ...]:
    """Return all task tools. `background` has the operations that tasks may call."""
    return (
        _generate_tool(state, draft, background),
        _run_tool(state, start, background),
        _cancel_tool(cancel),
    )


def _generate_tool(state: State, draft: DraftTasks, background: Catalogue) -> Tool:
    def found(step_id: str) -> tuple[Plan, PlanStep]:
        now = state()
        plan, step = find_step(now, step_id)
        check_consent(plan)
        check_not_under_way(now, step)
        if step.status == "completed":
            raise ToolError(f"{step.step_id} is complete. For more work, add a step with plan_tool.revise.")
        return plan, step

    async def run(args: GenerateList, _access: Access) -> ToolResult:
        tasks = _checked(await drafted("tasks", draft(*found(args.step_id))), background)
        # Read the state again, because the plan may have changed meanwhile.
        plan, step = found(args.step_id)
        filled = replace(step, task_list=tasks)
        steps = tuple(filled if one.step_id == step.step_id else one for one in plan.steps)
        after = derive(replace(plan, steps=steps))
        listed = "\n".join(map(task_text, tasks))
        text = (
            f"{len(tasks)} tasks for {step.step_id} ({step.name}), none has run yet:\n{listed}\n"
            f"Run them with task_loop.run, step_id {step.step_id}."
        )
        return ToolResult(text=text, events=(PlanChanged(plan=after, change="tasks"),))

    summary = "write the tasks of the step step_id; runs nothing"
    operation = "task_tool.generate_list"
    return Tool(operation=operation, args=GenerateList, summary=summary, effect="read", run=run)


def _run_tool(state: State, start: Start, background: Catalogue) -> Tool:
    async def run(args: RunList, _access: Access) -> ToolResult:
        now = state()
        if now.background_runs and now.task_list is not None:
            raise ToolError(
                f"{now.task_list.list_id} is still under way, and only one list runs at a time. "
                "Wait for its report, or stop it with task_loop.cancel."
            )
        given = args.task_list or ()
        wanted = _of_step(now, args.step_id) if args.step_id is not None else new_tasks(given)
        tasks = _checked(wanted, background)
        list_id = start(tasks, args.step_id.strip() if args.step_id else None)
        return ToolResult(
            text=f"{list_id} runs in the background: {len(tasks)} tasks. A report follows when it has ended."
        )

    summary = "run the tasks of step_id, or task_list, a list of {operation, args}, in the background"
    # The tool itself touches no file: each task goes through the gate separately.
    return Tool(operation="task_loop.run", args=RunList, summary=summary, effect="read", run=run)


def _cancel_tool(cancel: Cancel) -> Tool:
    async def run(_args: NoArguments, _access: Access) -> ToolResult:
        stopped = cancel()
        return ToolResult(text="The list in the background is being stopped." if stopped else "No list runs.")

    operation, summary = "task_loop.cancel", "stop that list"
    return Tool(operation=operation, args=NoArguments, summary=summary, effect="read", run=run)


def _of_step(now: AgentState, step_id: str) -> tuple[Task, ...]:
    """Return the tasks of a step that have not completed, as pending ones."""
    plan, step = find_step(now, step_id)
    check_may_start(plan, step)
    if not step.task_list:
        raise ToolError(
            f"{step.step_id} has no tasks. Call task_tool.generate_list for {step.step_id} first."
        )
    left = [task for task in step.task_list if task.status != "completed"]
    if not left:
        raise ToolError(f"All tasks of {step.step_id} are complete.")
    return tuple(replace(task, status="pending", result=None) for task in left)


def _checked(tasks: Sequence[Task], background: Catalogue) -> tuple[Task, ...]:
    """Return the tasks with full operation names. Refuse the list, with reasons, if one can't be called."""
    checked: list[Task] = []
    problems: list[str] = []
    for place, task in enumerate(tasks, start=1):
        try:
            checked.append(replace(task, operation=_operation(task, background)))
        except ToolError as error:
            problems.append(f"Task {place}: {error}")
    if problems:
        raise ToolError("\n".join(["The list can't be used, nothing was run or kept.", *problems]))
    return tuple(checked)


def _operation(task: Task, background: Catalogue) -> str:
    named = task.operation
    if may_be_task(named):
        named = background.validate(Action(operation=named, args=task.args))[0].operation
    if not may_be_task(named):
        raise ToolError(f"{named} can't be a task: to plan and to start lists is for the conversation.")
    return named
