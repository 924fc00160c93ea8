"""Actions, plans and tasks in words: short names, a plan as a tree, progress as a bar."""

from collections.abc import Mapping, Sequence

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.domain.work.plan import Plan, Task, WorkStatus
from duckflow.i18n.catalogue import has_text, text
from duckflow.i18n.plans import plan_facts, step_title
from duckflow.ui.input.prompt_view import Line
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import cut_to_width

MARKS: dict[WorkStatus, str] = {"pending": "○", "in_progress": "◐", "completed": "●", "failed": "✗"}
_BAR = 10
_TARGET = 100
_DOCUMENT = lazy_regex(r"[^\n]*<<-?\s*[\"'\\]?[A-Za-z_][^\n]*(?=\n)")


def plan_tree(state: AgentState) -> str:
    """Return the active plan with its steps and their tasks."""
    plan = state.active_plan
    if plan is None:
        return text("plan.none")
    lines = [plan_line(plan), *plan_facts(plan)]
    for step in plan.steps:
        branch, below = ("└─", "   ") if step is plan.steps[-1] else ("├─", "│  ")
        lines.append(f"{branch} {MARKS[step.status]} {step_title(plan, step)}: {step.description}")
        lines += [f"{below} {MARKS[task.status]} {task_name(task)}" for task in step.task_list]
    return "\n".join(lines)


def plan_line(plan: Plan) -> str:
    """Return the name of a plan and its progress."""
    done = sum(1 for step in plan.steps if step.status == "completed")
    return text("plan.tree", name=plan.name, done=done, count=len(plan.steps))


def tasks_tree(state: AgentState) -> str:
    """Return the background tasks with their status, and the background commands."""
    tasks = state.task_list.tasks if state.task_list else ()
    lines = [text("tasks.progress", done=_done(tasks), count=len(tasks))] if tasks else []
    lines += [f"  {MARKS[task.status]} {task_name(task)}" for task in tasks]
    lines += [f"  ◐ {one.id}: $ {on_one_line(one.command)}" for one in state.background_commands]
    return "\n".join(lines) or text("tasks.none")


def progress_line(state: AgentState, columns: int) -> Line | None:
    """Return the progress of the background tasks in one line, None if none are running."""
    if state.task_list is None or state.task_list.ended:
        return None
    tasks = state.task_list.tasks
    filled = round(_BAR * _done(tasks) / max(len(tasks), 1))
    now = next((f" {task_name(task)}" for task in tasks if task.status == "in_progress"), "")
    counted = text("tasks.bar", done=_done(tasks), count=len(tasks))
    shown = cut_to_width(f" {counted}{now}", max(columns - _BAR - 1, 0))
    return [("done", "▰" * filled), ("faint", "▱" * (_BAR - filled)), ("faint", shown)]


def task_name(task: Task) -> str:
    """Return a few words for a task."""
    return action_name(task.operation, task.args, done=task.status == "completed")


def action_name(
    operation: str, args: Mapping[str, object], path: str | None = None, *, done: bool = False
) -> str:
    """Return a few words for an action: its operation and its target."""
    named_first = ("command", "pattern", "to", "query", "symbol")
    said = next((args[name] for name in named_first if isinstance(args.get(name), str)), path)
    named = (args[name] for name in ("path", "id", "name", "url", "tool") if args.get(name))
    said = str(said or next(named, ""))
    said = _without_document(said) if "command" in args else said + _lines_read(operation, args)
    target = cut(on_one_line(said), _TARGET)
    name, place = action_key(operation, args), cut(on_one_line(_searched_place(operation, args)), _TARGET)
    if not has_text(f"did.{name}"):  # operation of a plugin or an MCP server
        return f"{on_one_line(operation)} {target}".rstrip()
    if place:
        named_in = {"target": target, "place": place}
        return text("did.search_in", **named_in) if done else text("doing.search_in", **named_in)
    return (text(f"did.{name}", target=target) if done else text(f"doing.{name}", target=target)).strip()


def _without_document(command: str) -> str:
    """Return a command up to the text that it writes or passes on (`<<EOF`), which may be long."""
    first = _DOCUMENT.match(command)
    return f"{first[0]} …" if first else command


def _lines_read(operation: str, args: Mapping[str, object]) -> str:
    start, end = args.get("start"), args.get("end")
    if operation != "file_ops.read_file" or not (start or end):
        return ""
    return f":{start or 1}-{end or ''}"


def _searched_place(operation: str, args: Mapping[str, object]) -> str:
    """Return the folder, file or kind of files that a search is limited to."""
    if operation != "file_ops.search":
        return ""
    path, glob = (str(args.get(name) or "") for name in ("path", "glob"))
    return "/".join(part for part in (path.rstrip("/"), glob) if part not in ("", ".", "*", "**"))


def action_key(operation: str, args: Mapping[str, object]) -> str:
    """Return the name of an operation in the catalogue. What agents changed has its own."""
    joined = operation == "shell.take_over" and args.get("command") == ""
    return "agent_take_over" if joined else operation.replace(".", "_")


def _done(tasks: Sequence[Task]) -> int:
    return sum(1 for task in tasks if task.status == "completed")
