"""Reports on task lists: the model's words checked against the facts, or the facts alone (C3)."""

from collections.abc import Iterable, Sequence
from typing import Literal

from duckflow.domain.events import TaskReported
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.plan import Task, TaskList
from duckflow.prompts.questions import question_request
from duckflow.prompts.templates import template
from duckflow.prompts.tokens import estimate_tokens
from duckflow.services.questions import Question
from duckflow.services.task_lists import task_line

ReportStatus = Literal["success", "partial", "failed", "cancelled"]

CANCELLED = "cancelled"
"""Result of a task that was stopped (C4)."""

_WORSE: Sequence[ReportStatus] = ("success", "partial", "failed")
_SUMMARY, _CAUSE, _NEXT, _REQUEST = 1000, 300, 500, 1000
_ANSWER = 1024


class FailureCause(Frozen):
    """Why one task failed, by its id."""

    task: str
    cause: str


class TaskReport(Frozen):
    """A report as a model writes it."""

    status: ReportStatus
    summary: str
    failures: tuple[FailureCause, ...] = ()
    next_action: str = ""


def write_report(task_list: TaskList, request: str = "") -> Question[TaskReport, TaskReported]:
    """Ask for a report to the user on a finished list. Without an answer, report the facts alone."""
    facts = plain_report(task_list)
    return Question(
        kind="report",
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
    """Return a line for each task, or only a count of the completed ones if the lines are too long."""
    lines = "\n".join(map(task_line, tasks))
    if estimate_tokens(lines) <= budget:
        return lines
    telling = [task_line(task) for task in tasks if task.status != "completed"]
    counted = f"{len(tasks) - len(telling)} more tasks, all completed"
    return head_and_tail("\n".join([*telling, counted]), budget)


def plain_report(task_list: TaskList, *, cancelled: bool = False) -> TaskReported:
    """Report on a list from the facts alone."""
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
    """Return the status of a list. Only a failure or the user ends a list early."""
    if any(task.result == CANCELLED for task in failed) or (pending and not failed):
        return "cancelled"
    if failed:
        return "partial" if done else "failed"
    return "success"


def _contradictions(report: TaskReport, facts: TaskReported) -> Iterable[str]:
    """Yield claims that are better than the facts. A worse claim may be right."""
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
    said = one_line(cause, _CAUSE) or "no reason was given"
    return f"{task.operation} ({task.task_id}): {said}"
