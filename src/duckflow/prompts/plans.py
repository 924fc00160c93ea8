"""Prompts for a plan, for the tasks of one step and for the report on a finished task list.

The fixed text comes first, so that calls share a prefix; the text about this case follows.
"""

import json
from collections.abc import Iterable, Sequence

from duckflow.domain.decision import Operation
from duckflow.domain.model import ModelRequest, ModelTraits
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut, head_and_tail
from duckflow.domain.work.plan import Plan, PlanStep, Task, TaskList, progress
from duckflow.prompts.sections import question_messages
from duckflow.prompts.templates import fill, template
from duckflow.prompts.tokens import estimate_tokens

_ANSWER_SHARE = 4
"""A quarter of the window is reserved for the answer."""

_MOST_ANSWER = 8192
_REPORT_ANSWER = 1024
_ONE_EVIDENCE = 12_000
_ARGS, _RESULT = 160, 300


def plan_request(traits: ModelTraits, goal: str, summary: str, evidence: Sequence[str]) -> ModelRequest:
    """Ask the model for a plan that reaches the goal."""
    about = [f"Goal of the plan: {goal}", *_said(summary)]
    return _request("PlanDraft", traits, template("plan"), about, evidence)


def task_list_request(
    traits: ModelTraits,
    in_plan: tuple[Plan, PlanStep],
    summary: str,
    evidence: Sequence[str],
    operations: Sequence[Operation],
) -> ModelRequest:
    """Ask the model for the tasks of one step of a plan."""
    plan, step = in_plan
    listed = "\n".join(f"- {operation.line}" for operation in operations)
    steps = "\n".join(f"{place}. {one.name} ({one.status})" for place, one in enumerate(plan.steps, start=1))
    about = [
        f"Goal of the plan: {plan.goal}",
        f"Progress: {progress(plan)}\n{steps}",
        *_said(summary),
        f"The step to turn into tasks: {step.name}\n{step.description}",
    ]
    earlier = [_task_line(task) for task in step.task_list if task.status in ("completed", "failed")]
    if earlier:
        about.append("Tried before for this step:\n" + "\n".join(earlier))
    return _request("TaskListDraft", traits, fill("task_list", operations=listed), about, evidence)


def report_request(traits: ModelTraits, task_list: TaskList, request: str) -> ModelRequest:
    """Ask the model for a report on a list of tasks."""
    lines = _fitting(task_list.tasks, traits.window // 2)
    text = f"The request: {cut(request, 1000) or '(not known)'}\n\nThe tasks and their results\n{lines}"
    return ModelRequest(
        output="TaskReport",
        messages=question_messages("TaskReport", template("report"), text),
        max_tokens=min(traits.window // _ANSWER_SHARE, _REPORT_ANSWER),
    )


def summary_of(state: AgentState) -> str:
    """Summarize the conversation: earlier requests, one per line, the current one, and its constraints."""
    now = [f"- Now: {cut(state.request.text, 1000)}"] if state.request is not None else []
    return "\n".join([*_earlier(state), *now, *_constraints(state)])


def spoken_before(state: AgentState) -> str:
    """Return the same summary without the current request, for prompts that contain it in full."""
    return "\n".join([*_earlier(state), *_constraints(state)])


def _earlier(state: AgentState) -> list[str]:
    return [f"- {line}" for line in state.summaries]


def _constraints(state: AgentState) -> list[str]:
    return [f"- Constraint: {text}" for text in state.items.constraints]


def evidence_of(state: AgentState) -> tuple[str, ...]:
    """Return the evidence that is still valid, oldest first."""
    return tuple(entry.text for entry in state.transcript if entry.evidence_id and not entry.stale)


def _request(
    output: str, traits: ModelTraits, system: str, about: Sequence[str], evidence: Sequence[str]
) -> ModelRequest:
    answer = min(traits.window // _ANSWER_SHARE, _MOST_ANSWER)
    asked = "\n\n".join(about)
    left = traits.window - answer - estimate_tokens(system + asked)
    shown = _newest(evidence, min(left, traits.window // 2))
    found = ["Evidence, oldest first", *shown] if shown else ["Evidence: none yet"]
    return ModelRequest(
        output=output,
        messages=question_messages(output, system, "\n\n".join([*found, asked])),
        max_tokens=answer,
    )


def _said(summary: str) -> list[str]:
    return [f"What was spoken of:\n{summary}"] if summary.strip() else []


def _newest(evidence: Sequence[str], budget: int) -> list[str]:
    """Return as much of the newest evidence as fits, oldest first."""
    shown: list[str] = []
    for text in reversed(evidence):
        held = head_and_tail(text, _ONE_EVIDENCE)
        budget -= estimate_tokens(held)
        if budget < 0:
            break
        shown.append(held)
    return shown[::-1]


def _fitting(tasks: Iterable[Task], budget: int) -> str:
    """Return a line for each task, or only a count of the completed ones if the lines are too long."""
    listed = list(tasks)
    lines = "\n".join(map(_task_line, listed))
    if estimate_tokens(lines) <= budget:
        return lines
    telling = [task for task in listed if task.status != "completed"]
    counted = f"{len(listed) - len(telling)} more tasks, all completed"
    return head_and_tail("\n".join([*map(_task_line, telling), counted]), budget)


def _task_line(task: Task) -> str:
    args = cut(json.dumps(task.args, ensure_ascii=False), _ARGS)
    result = f": {cut(task.result, _RESULT)}" if task.result else ""
    return f"{task.task_id} {task.operation} {args}: {task.status}{result}"
