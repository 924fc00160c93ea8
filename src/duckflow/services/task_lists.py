"""Side questions for the tasks of one step of a plan (B3), and for reports on finished task lists (C3)."""

import json
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from pydantic import Field, JsonValue

from duckflow.domain.decision import Action, Operation
from duckflow.domain.errors import ToolError
from duckflow.domain.events import TaskReported
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.objective import Evidence
from duckflow.domain.work.plan import Plan, PlanStep, Task, TaskList, new_id, progress
from duckflow.llm.tokens import estimate_tokens
from duckflow.prompts.questions import PLAN_ANSWER, question_request, spoken_text
from duckflow.prompts.templates import fill, template
from duckflow.services.questions import AskedModel, Question

MOST_TASKS = 20
_ARGS, _RESULT, _NAME = 160, 1500, 200
NEVER_TASKS = ("plan_tool", "task_tool", "task_loop")
"""Operation families that tasks can't use, because a background list must not plan or start another list."""


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
    """Ask for the tasks that carry out a step. `validate` raises ToolError for an invalid call."""
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
        asked=AskedModel(tier="creative", output="TaskListDraft", effort="medium", small=True),
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
    result = f": {head_and_tail(task.result, _RESULT)}" if task.result else ""
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


ReportStatus = Literal["success", "partial", "failed", "cancelled"]

CANCELLED = "cancelled"
"""Result of a task that was stopped (C4)."""

_WORSE: Sequence[ReportStatus] = ("success", "partial", "failed")
_SUMMARY, _CAUSE, _NEXT, _REQUEST, _TARGET = 1000, 300, 500, 1000, 100
_ANSWER = 1024


class FailureCause(Frozen):
    """Reason why one task failed, with the id of the task."""

    task: str
    cause: str


class TaskReport(Frozen):
    """A report as a model writes it."""

    status: ReportStatus
    summary: str
    failures: tuple[FailureCause, ...] = ()
    next_action: str = ""


def write_report(task_list: TaskList, request: str = "") -> Question[TaskReport, TaskReported]:
    """Ask for a report to the user on a finished task list. Without an answer, report only the facts."""
    facts = plain_report(task_list)
    return Question(
        asked=AskedModel(tier="fast", output="TaskReport", small=True),
        prompt=lambda traits: _prompt(traits, task_list, request),
        shape=TaskReport,
        check=lambda report: _contradictions(report, facts),
        read=lambda report: _merged(facts, report, task_list),
        otherwise=lambda: facts,
    )


def _prompt(traits: ModelTraits, task_list: TaskList, request: str) -> ModelRequest:
    about = [f"The tasks and their results\n{_task_lines(task_list.tasks, traits.window // 2)}"]
    asked = cut(request, _REQUEST)
    return question_request("TaskReport", traits, template("report"), about, asked, most_answer=_ANSWER)


def _task_lines(tasks: Sequence[Task], budget: int) -> str:
    lines = "\n".join(map(task_line, tasks))
    if estimate_tokens(lines) <= budget:
        return lines
    telling = [task_line(task) for task in tasks if task.status != "completed"]
    counted = f"{len(tasks) - len(telling)} more tasks, all completed"
    return head_and_tail("\n".join([*telling, counted]), budget)


def plain_report(task_list: TaskList, *, cancelled: bool = False) -> TaskReported:
    """Report on a task list from its results, without a model."""
    tasks = task_list.tasks
    done = sum(1 for task in tasks if task.status == "completed")
    failed = [task for task in tasks if task.status == "failed"]
    pending = len(tasks) - done - len(failed)
    return TaskReported(
        list_id=task_list.list_id,
        status=CANCELLED if cancelled else _status(failed, done, pending),
        completed=done,
        failed=len(failed),
        pending=pending,
        summary=f"{done} of {len(tasks)} tasks completed, {len(failed)} failed, {pending} not run.",
        failures=tuple(_failure(task, task.result or "") for task in failed),
    )


def _status(failed: Sequence[Task], done: int, pending: int) -> ReportStatus:
    """Return the status of a task list. Only a failure or the user ends a list early."""
    if any(task.result == CANCELLED for task in failed) or (pending and not failed):
        return "cancelled"
    if failed:
        return "partial" if done else "failed"
    return "success"


def _contradictions(report: TaskReport, facts: TaskReported) -> Iterable[str]:
    """Yield faults of a report that claims a better status than the facts. A worse status may be right."""
    if not report.summary.strip():
        yield "`summary` is empty"
    elif facts.status in (report.status, CANCELLED):
        return
    elif report.status == CANCELLED:
        yield "`status` can't be cancelled: the list was not stopped"
    elif _WORSE.index(report.status) < _WORSE.index(facts.status):
        counts = f"{facts.failed} tasks failed and {facts.pending} did not run"
        yield f"`status` can't be {report.status}: {counts}, so it is {facts.status}"


def _merged(facts: TaskReported, report: TaskReport, task_list: TaskList) -> TaskReported:
    causes = {one.task.strip(): one.cause for one in report.failures if one.cause.strip()}
    named = [task for task in task_list.tasks if task.status == "failed" or task.task_id in causes]
    return replace(
        facts,
        status=CANCELLED if facts.status == CANCELLED else report.status,
        summary=cut(report.summary.strip(), _SUMMARY),
        by="model",
        failures=tuple(_failure(task, causes.get(task.task_id, task.result or "")) for task in named),
        next_action=cut(report.next_action.strip(), _NEXT),
    )


def _failure(task: Task, cause: str) -> str:
    said = one_line(head_and_tail(cause, _CAUSE), 2 * _CAUSE) or "no reason was given"
    target = next((task.args[name] for name in ("command", "path") if task.args.get(name)), task.operation)
    return f"{one_line(str(target), _TARGET)}: {said}"
