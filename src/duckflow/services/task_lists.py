"""Tasks for one step of a plan, written by the model and checked by the program to be callable (B3)."""

import json
from collections.abc import Callable, Iterable, Sequence

from pydantic import Field, JsonValue

from duckflow.domain.decision import Action, Operation
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut
from duckflow.domain.work.objective import Evidence
from duckflow.domain.work.plan import Plan, PlanStep, Task, new_id, progress
from duckflow.prompts.questions import PLAN_ANSWER, question_request, spoken_text
from duckflow.prompts.templates import fill
from duckflow.services.questions import Question

MOST_TASKS = 20
_ARGS, _RESULT, _NAME = 160, 300, 200
NEVER_TASKS = ("plan_tool", "task_tool", "task_loop")
"""Operation families that need the chat: a background list must not plan or start another list."""


class TaskDraft(Frozen):
    """One call as a model writes it."""

    operation: str
    args: dict[str, JsonValue] = Field(default_factory=dict)


class TaskListDraft(Frozen):
    """A list of calls as a model writes it."""

    tasks: tuple[TaskDraft, ...]


def draft_tasks(
    plan: Plan,
    step: PlanStep,
    summary: str,
    evidence: Sequence[Evidence],
    operations: Sequence[Operation],
    validate: Callable[[Action], object],
) -> Question[TaskListDraft, tuple[Task, ...]]:
    """Ask for the tasks that carry out a step. `validate` raises ToolError for a call that can't be made."""
    offered = [one.line for one in operations if may_be_task(one.name)]
    steps = (f"{place}. {one.name} ({one.status})" for place, one in enumerate(plan.steps, start=1))
    earlier = [task_line(task) for task in step.task_list if task.status in ("completed", "failed")]
    about = [
        f"Goal of the plan: {plan.goal}",
        "\n".join([f"Progress: {progress(plan)}", *steps]),
        *spoken_text(summary),
        f"The step to turn into tasks: {step.name}\n{step.description}",
        *(["\n".join(["Tried before for this step:", *earlier])] if earlier else []),
    ]
    return Question(
        kind="tasks",
        prompt=lambda traits: question_request(
            "TaskListDraft",
            traits,
            fill("task_list", operations="\n".join(f"- {line}" for line in offered)),
            about,
            evidence=evidence,
            most_answer=PLAN_ANSWER,
        ),
        shape=TaskListDraft,
        check=lambda draft: _problems(draft, validate),
        read=lambda draft: new_tasks(draft.tasks),
        bound=False,
    )


def new_tasks(drafts: Iterable[TaskDraft]) -> tuple[Task, ...]:
    """Create tasks that have not run yet."""
    return tuple(
        Task(task_id=new_id("task"), operation=draft.operation.strip(), args=draft.args) for draft in drafts
    )


def task_line(task: Task) -> str:
    """Return one line about a task, its arguments and its result."""
    args = cut(json.dumps(task.args, ensure_ascii=False), _ARGS)
    result = f": {cut(task.result, _RESULT)}" if task.result else ""
    return f"{task.task_id} {task.operation} {args}: {task.status}{result}"


def may_be_task(operation: str) -> bool:
    """Return True if an operation may run in the background."""
    return operation.strip().partition(".")[0] not in NEVER_TASKS


def _problems(draft: TaskListDraft, validate: Callable[[Action], object]) -> Iterable[str]:
    if not 1 <= len(draft.tasks) <= MOST_TASKS:
        yield f"a list has 1 to {MOST_TASKS} tasks, not {len(draft.tasks)}"
    for place, task in enumerate(draft.tasks, start=1):
        operation = task.operation.strip() or "(none)"
        if not may_be_task(operation):
            yield f"task {place}: {operation} can't be a task"
            continue
        try:
            validate(Action(operation=operation[:_NAME], args=task.args))
        except ToolError as error:
            yield f"task {place}: {error}"
