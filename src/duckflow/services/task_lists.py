"""Tasks for one step of a plan, written by the model and checked by the program to be callable (B3)."""

import json
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

from pydantic import Field, JsonValue

from duckflow.domain.decision import Operation
from duckflow.domain.frozen import Frozen
from duckflow.domain.text import cut
from duckflow.domain.work.objective import Evidence
from duckflow.domain.work.plan import Plan, PlanStep, Task, new_id, progress
from duckflow.prompts.questions import PLAN_ANSWER, question_request, spoken_text
from duckflow.prompts.templates import fill
from duckflow.services.questions import Question

MOST_TASKS = 20
_ARGS, _RESULT = 160, 300
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
    plan: Plan, step: PlanStep, summary: str, evidence: Sequence[Evidence], operations: Sequence[Operation]
) -> Question[TaskListDraft, tuple[Task, ...]]:
    """Ask for the tasks that carry out a step."""
    offered = {one.name: one for one in operations if may_be_task(one.name)}
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
            fill("task_list", operations="\n".join(f"- {one.line}" for one in offered.values())),
            about,
            evidence=evidence,
            most_answer=PLAN_ANSWER,
        ),
        shape=TaskListDraft,
        check=lambda draft: _problems(draft, offered),
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


def _problems(draft: TaskListDraft, offered: dict[str, Operation]) -> Iterable[str]:
    if not 1 <= len(draft.tasks) <= MOST_TASKS:
        yield f"a list has 1 to {MOST_TASKS} tasks, not {len(draft.tasks)}"
    for place, task in enumerate(draft.tasks, start=1):
        operation = offered.get(task.operation.strip())
        if operation is None:
            yield f"task {place}: {_unknown(task.operation, offered)}"
        else:
            yield from (f"task {place}, {operation.name}: {fault}" for fault in _misfits(task, operation))


def _unknown(name: str, offered: dict[str, Operation]) -> str:
    if not may_be_task(name):
        return f"{name} can't be a task"
    near = get_close_matches(name, offered, n=1)
    hint = f"the nearest is {near[0]}" if near else f"there are: {', '.join(offered)}"
    return f"there is no operation {name[:100]}, {hint}"


def _misfits(task: TaskDraft, operation: Operation) -> Iterable[str]:
    """Yield missing and unknown arguments. The tool itself checks their values."""
    schema = operation.schema()
    known: dict[str, object] = schema.get("properties") or {}
    needed: list[str] = schema.get("required") or []
    for name in needed:
        if name not in task.args:
            yield f"{name} is missing"
    for name in task.args:
        if name not in known:
            yield f"there is no argument {name[:100]}"
