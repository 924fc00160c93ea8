"""Plans and tasks as a person follows them: a tree, a bar, the task in hand."""

from duckflow.domain.state import AgentState
from duckflow.domain.work.plan import Plan, PlanStep, Task, WorkStatus
from duckflow.i18n.catalogue import text
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width
from duckflow.ui.views.tool_lines import named_action

MARKS: dict[WorkStatus, str] = {"pending": "○", "in_progress": "◐", "completed": "●", "failed": "✗"}
_BAR = 10


def plan_tree(state: AgentState) -> str:
    """The plan in hand with its steps and their tasks."""
    plan = state.active_plan
    if plan is None:
        return text("plan.none")
    lines = [_title(plan)]
    for place, step in enumerate(plan.steps):
        last = place == len(plan.steps) - 1
        lines.append(f"{'└─' if last else '├─'} {MARKS[step.status]} {step.name}: {step.description}")
        lines += [f"{'   ' if last else '│  '} {one}" for one in _tasks(step)]
    return "\n".join(lines)


def tasks_tree(state: AgentState) -> str:
    """The tasks of the background, with where each stands."""
    tasks = state.task_list.tasks if state.task_list else ()
    lines = [_count(tasks), *(f"  {MARKS[task.status]} {named(task)}" for task in tasks)] if tasks else []
    lines += [f"  ◐ {one.id}: $ {on_one_line(one.command)}" for one in state.background_commands]
    return "\n".join(lines) or text("tasks.none")


def progress_line(state: AgentState, columns: int) -> Line | None:
    """How far the background is, in one line; None if nothing runs there."""
    if state.task_list is None or state.task_list.ended:
        return None
    tasks = state.task_list.tasks
    done = sum(1 for task in tasks if task.status == "completed")
    filled = round(_BAR * done / max(len(tasks), 1))
    now = next((task for task in tasks if task.status == "in_progress"), None)
    shown = f" {done}/{len(tasks)}" + (f" {named(now)}" if now else "")
    return [
        ("done", "▰" * filled),
        ("faint", "▱" * (_BAR - filled)),
        ("faint", cut_to_width(shown, max(columns - _BAR - 1, 0))),
    ]


def named(task: Task) -> str:
    """A task in a few words."""
    return named_action(task.operation, task.args, done=task.status == "completed")


def _title(plan: Plan) -> str:
    done = sum(1 for step in plan.steps if step.status == "completed")
    risk = text(f"plan.risk_{plan.risk}")
    return text("plan.tree", name=plan.name, done=done, count=len(plan.steps), risk=risk)


def _tasks(step: PlanStep) -> list[str]:
    return [f"{MARKS[task.status]} {named(task)}" for task in step.task_list]


def _count(tasks: tuple[Task, ...]) -> str:
    done = sum(1 for task in tasks if task.status == "completed")
    return text("tasks.progress", done=done, count=len(tasks))
