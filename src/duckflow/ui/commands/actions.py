"""What each command does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, get_args

from duckflow.domain.state import Mode
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import COMMANDS
from duckflow.ui.engine import Engine
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import width_of, wrap_beside
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen
from duckflow.ui.views.progress import plan_tree, tasks_tree
from duckflow.ui.views.tables import cost_text

MODES: tuple[Mode, ...] = get_args(Mode)
MOST_RATING = 10
_TITLE = 60


class CommandContext(NamedTuple):
    """What commands work with."""

    engine: Engine
    paper: Writer
    screen: Screen
    leave: Callable[[str | None], None]
    """For good, or for another session (empty: a new one)."""


def show_help(desk: CommandContext, argument: str) -> None:
    """All commands and keys."""
    del argument
    rows = [(f"/{one.name} {one.takes}".rstrip(), text(f"commands.{one.name}")) for one in COMMANDS.values()]
    rows += [(keys, text(f"keys.{does}_does")) for does, keys in _KEYS.items()]
    wide = max(width_of(name) for name, _ in rows)
    for name, does in rows:
        before = f"{name}{' ' * (wide - width_of(name))}  "
        paper = desk.paper
        paper.line(wrap_beside(before, does, paper.columns) if paper.formatted else before + does)
    desk.paper.line(text("chat.help"), "dim")


_KEYS = {
    "stop": "Esc, Ctrl-C",
    "newline": "Alt-Enter, Ctrl-J",
    "mode": "Shift-Tab",
    "expand": "Ctrl-O",
    "file": "@path",
    "shell": "!command",
    "search": "Ctrl-R",
    "leave": "Ctrl-D",
}


def show_status(desk: CommandContext, argument: str) -> None:
    """How it is doing, and why it may take so many loops."""
    del argument
    from duckflow.ui.views.health import status_text  # noqa: PLC0415 - only when asked for

    columns = desk.paper.columns if desk.paper.formatted else None
    desk.paper.line(status_text(desk.engine.state, columns))


def show_goal(desk: CommandContext, argument: str) -> None:
    """What the request wants, and how far that is met."""
    del argument
    from duckflow.ui.views.goal import goal_text  # noqa: PLC0415 - as above

    desk.paper.line(goal_text(desk.engine.state))


def show_plan(desk: CommandContext, argument: str) -> None:
    """The plan as a tree."""
    del argument
    desk.paper.line(plan_tree(desk.engine.state))


def show_tasks(desk: CommandContext, argument: str) -> None:
    """The tasks of the background."""
    del argument
    desk.paper.line(tasks_tree(desk.engine.state))


def cancel_tasks(desk: CommandContext, argument: str) -> None:
    """Stop the background."""
    del argument
    if not desk.engine.cancel_tasks():
        desk.paper.line(text("tasks.none"))


async def show_difference(desk: CommandContext, argument: str) -> None:
    """What changed."""
    difference = await desk.engine.diff(session=argument == "session")
    if not difference.strip():
        desk.paper.line(text("diff.none"))
        return
    paper = desk.paper
    columns = paper.columns if paper.formatted else 0
    paper.raw(*difference_lines(difference, columns, coloured=paper.coloured))


async def undo(desk: CommandContext, argument: str) -> None:
    """Take changes back."""
    from duckflow.ui.views.undo import undo_text  # noqa: PLC0415 - as above

    desk.paper.line(undo_text(await desk.engine.undo(argument)))


def set_mode(desk: CommandContext, argument: str) -> None:
    """Show the mode, or change it."""
    wanted: Mode | None = next((mode for mode in MODES if mode == argument), None)
    if argument and wanted is None:
        desk.paper.line(text("mode.unknown", mode=on_one_line(argument), modes=", ".join(MODES)), "yellow")
    elif wanted is not None:
        desk.engine.set_mode(wanted)
    else:
        mode = desk.engine.state.mode
        desk.paper.line(text("mode.now", mode=mode, means=text(f"status.means.{mode}")))


async def set_model(desk: CommandContext, argument: str) -> None:
    """Show the model, or change it."""
    if argument:
        await desk.engine.set_model(argument)
    else:
        desk.paper.line(text("model.now", model=desk.engine.state.model))


def show_cost(desk: CommandContext, argument: str) -> None:
    """Tokens and money, by tier."""
    del argument
    desk.paper.raw(cost_text(desk.engine.state))


def rate(desk: CommandContext, argument: str) -> None:
    """How the user liked the last request."""
    if not argument.isdecimal() or not 1 <= int(argument) <= MOST_RATING:
        desk.paper.line(text("stats.rate_usage"), "yellow")
    elif desk.engine.rate(int(argument)):
        desk.paper.line(text("stats.rated", rating=int(argument)))
    else:
        desk.paper.line(text("stats.rate_nothing"))


def show_memory(desk: CommandContext, argument: str) -> None:
    """What is remembered, or less of it."""
    from duckflow.ui.views.memory import memory_lines  # noqa: PLC0415 - as above

    word, *wanted = argument.split() or [""]
    if word == "delete" and wanted and all(one.isdecimal() for one in wanted):
        gone = desk.engine.forget([int(one) for one in wanted])
        desk.paper.line(text("memory.deleted", count=gone))
    elif word:
        desk.paper.line(text("memory.usage"), "yellow")
    else:
        for line in memory_lines(desk.engine.memories(), desk.engine.state.workspace):
            desk.paper.line(line)


def show_history(desk: CommandContext, argument: str) -> None:
    """The requests of this session, and earlier sessions of this folder."""
    del argument
    for line in desk.engine.state.summaries:
        desk.paper.line(f"  {line}")
    if not list_sessions(desk) and not desk.engine.state.summaries:
        desk.paper.line(text("session.none"))


def list_sessions(desk: CommandContext) -> bool:
    """Earlier sessions, one a line; False where there are none."""
    here = desk.engine.state.session_id
    others = [one for one in desk.engine.sessions() if one.session_id != here]
    for one in others:
        when = one.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        desk.paper.line(f"  {one.session_id}  {when}  {cut(on_one_line(one.title), _TITLE)}")
    return bool(others)


def expand(desk: CommandContext, argument: str) -> None:
    """The last result, whole."""
    del argument
    desk.screen.expand()


def show_settings(desk: CommandContext, argument: str) -> None:
    """What is set, and where."""
    del argument
    for line in desk.engine.settings():
        desk.paper.line(line)


def start_anew(desk: CommandContext, argument: str) -> None:
    """Leave for a new session."""
    del argument
    desk.leave("")


def resume(desk: CommandContext, argument: str) -> None:
    """Leave for an earlier session, or list them."""
    found = [one for one in desk.engine.sessions() if one.session_id.startswith(argument)] if argument else []
    if len(found) == 1:
        desk.leave(found[0].session_id)
    elif argument:
        desk.paper.line(text("session.no_such", session=on_one_line(argument)), "yellow")
    else:
        desk.paper.line(text("session.resume" if list_sessions(desk) else "session.none"))


def leave(desk: CommandContext, argument: str) -> None:
    """Leave."""
    del argument
    desk.leave(None)


ACTIONS: Mapping[str, Callable[[CommandContext, str], Awaitable[None] | None]] = {
    "help": show_help,
    "status": show_status,
    "goal": show_goal,
    "plan": show_plan,
    "tasks": show_tasks,
    "cancel": cancel_tasks,
    "diff": show_difference,
    "undo": undo,
    "mode": set_mode,
    "model": set_model,
    "cost": show_cost,
    "rate": rate,
    "memory": show_memory,
    "history": show_history,
    "expand": expand,
    "config": show_settings,
    "new": start_anew,
    "resume": resume,
    "quit": leave,
}
