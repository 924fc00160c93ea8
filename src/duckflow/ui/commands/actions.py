"""What each command does."""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from duckflow.domain import commands
from duckflow.domain.model import EFFORTS, EffortChoice
from duckflow.domain.modes import MODES, Mode
from duckflow.domain.session_client import SessionClient, find_message
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import COMMANDS, own_commands
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import width_of, wrap_beside
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen
from duckflow.ui.views.live.progress import plan_tree, tasks_tree
from duckflow.ui.views.tables import context_text, cost_text, memory_lines

MOST_RATING = 10
_TITLE = 60
_WANTED = 10
"""Characters of what an undo is asked for: a longer word is none."""
_PARTS: Mapping[str, commands.RewindPart] = {"": "both", "files": "files", "conversation": "conversation"}


class CommandContext(NamedTuple):
    """What commands work with."""

    client: SessionClient
    writer: Writer
    screen: Screen
    leave: Callable[[str | None], None]
    """For good, or for another session (empty: a new one)."""


def show_help(context: CommandContext) -> None:
    """All commands and keys."""
    rows = [(f"/{one.name} {one.takes}".rstrip(), text(f"commands.{one.name}")) for one in COMMANDS.values()]
    rows += [
        (on_one_line(f"/{own.name} {own.takes}".rstrip()), cut(on_one_line(own.description), _TITLE))
        for own in own_commands(context.client.extensions, context.client.servers())
    ]
    rows += [(keys, text(f"keys.{does}_does")) for does, keys in _KEYS.items()]
    wide = max(width_of(name) for name, _ in rows)
    for name, does in rows:
        before = f"{name}{' ' * (wide - width_of(name))}  "
        writer = context.writer
        writer.line(wrap_beside(before, does, writer.columns) if writer.formatted else before + does)
    context.writer.line(text("chat.help"), "dim")


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


def show_status(context: CommandContext) -> None:
    """How it is doing, and why it may take so many loops."""
    from duckflow.ui.views.health import status_text  # noqa: PLC0415 - only when asked for

    columns = context.writer.columns if context.writer.formatted else None
    context.writer.line(status_text(context.client.state, columns))


def show_goal(context: CommandContext) -> None:
    """What the request wants, and how far that is met."""
    from duckflow.ui.views.goal import goal_text  # noqa: PLC0415 - as above

    context.writer.line(goal_text(context.client.state))


def cancel_tasks(context: CommandContext) -> Awaitable[None] | None:
    """Stop the background: its tasks at once, commands that go on when it is their turn."""
    stopping = context.client.send(commands.StopBackground())
    if commands_alone(context.client.state):
        return _wait_for(stopping)
    if not context.client.state.background_runs:
        context.writer.line(text("tasks.none"))
    return None


async def _wait_for(result: Awaitable[commands.SessionResult]) -> None:
    await result


def commands_alone(state: AgentState) -> bool:
    """Whether commands go on in the background, and no tasks: what they did is asked about, in its turn."""
    return bool(state.background_commands) and not state.background_runs


async def show_difference(context: CommandContext, argument: str) -> None:
    """What changed."""
    if argument not in ("", "session"):
        context.writer.line(text("diff.wanted", wanted=on_one_line(argument)), "yellow")
        return
    difference = await context.client.diff(session=argument == "session")
    if not difference.strip():
        context.writer.line(text("diff.none"))
        return
    context.writer.raw(*difference_lines(difference, context.writer))


def _tell_objection(context: CommandContext, result: commands.SessionResult) -> None:
    if result.objection:
        context.writer.line(text(result.objection), "yellow")


async def undo(context: CommandContext, argument: str) -> None:
    """Take changes back."""
    from duckflow.ui.views.undo import undo_text  # noqa: PLC0415 - as above

    done = await context.client.send(commands.UndoWork(wanted=argument[:_WANTED]))
    _tell_objection(context, done)
    if done.report is not None:
        context.writer.line(undo_text(done.report))


async def rewind(context: CommandContext, argument: str) -> None:
    """Go back to before a message, or list the messages."""
    number, *parts = argument.split()[:2] or [""]
    part = parts[0] if parts else ""
    if not number:
        for place, *_, said in context.client.messages():
            context.writer.line(f"  {place}. {cut(on_one_line(said), _TITLE)}")
        context.writer.line(text("rewind.usage"), "dim")
    elif not number.isdecimal() or part not in _PARTS:
        context.writer.line(text("rewind.usage"), "yellow")
    else:
        from duckflow.ui.views.undo import undo_text  # noqa: PLC0415 - as above

        before = find_message(context.client.messages(), int(number)).seq
        done = await context.client.send(commands.RewindWork(before=before, part=_PARTS[part]))
        _tell_objection(context, done)
        if done.report is not None and (done.report.actions or done.report.commands):
            context.writer.line(undo_text(done.report))


async def fork(context: CommandContext, argument: str) -> None:
    """Go on in a new session that begins as this one is, or was before a message."""
    if argument and not argument.isdecimal():
        context.writer.line(text("rewind.usage"), "yellow")
        return
    before = find_message(context.client.messages(), int(argument)).seq if argument else None
    forked = await context.client.send(commands.ForkSession(before=before))
    context.leave(forked.session_id)


def set_mode(context: CommandContext, argument: str) -> None:
    """Show the mode, or change it."""
    wanted: Mode | None = next((mode for mode in MODES if mode == argument), None)
    if argument and wanted is None:
        context.writer.line(
            text("mode.unknown", mode=on_one_line(argument), modes=", ".join(MODES)), "yellow"
        )
    elif wanted is not None:
        context.client.send(commands.SetMode(mode=wanted))
    else:
        mode = context.client.state.mode
        context.writer.line(text("mode.now", mode=mode, means=text(f"status.means.{mode}")))


async def set_model(context: CommandContext, argument: str) -> None:
    """Show the model, or change it."""
    if argument:
        await context.client.send(commands.SetModel(name=argument))
    else:
        context.writer.line(text("model.now", model=context.client.state.model))


def set_effort(context: CommandContext, argument: str) -> None:
    """Show how much models are asked to think, or change it."""
    wanted: EffortChoice | None = next((effort for effort in EFFORTS if effort == argument.casefold()), None)
    if argument and wanted is None:
        levels = ", ".join(EFFORTS)
        context.writer.line(text("effort.unknown", effort=on_one_line(argument), efforts=levels), "yellow")
    elif wanted is not None:
        context.client.send(commands.SetEffort(effort=wanted))
    else:
        effort = context.client.state.effort
        context.writer.line(text("effort.now", effort=effort, means=text(f"effort.means.{effort}")))


async def show_context(context: CommandContext) -> None:
    """What is in the prompt, and what it takes of the model's window."""
    context.writer.raw(context_text(await context.client.context(), context.writer.columns))


async def rate(context: CommandContext, argument: str) -> None:
    """How the user liked the last request."""
    if not argument.isdecimal() or not 1 <= int(argument) <= MOST_RATING:
        context.writer.line(text("stats.rate_usage"), "yellow")
        return
    rated = await context.client.send(commands.RateRequest(rating=int(argument)))
    context.writer.line(text(rated.objection or "stats.rated", rating=int(argument)))


async def show_memory(context: CommandContext, argument: str) -> None:
    """What is remembered, or less of it."""
    word, *wanted = argument.split() or [""]
    if word == "delete" and wanted and all(one.isdecimal() for one in wanted):
        numbers = tuple(int(one) for one in wanted)
        gone = await context.client.send(commands.ForgetMemories(numbers=numbers))
        context.writer.line(text("memory.deleted", count=gone.forgotten))
    elif word:
        context.writer.line(text("memory.usage"), "yellow")
    else:
        for line in memory_lines(context.client.memories(), context.client.state.workspace):
            context.writer.line(line)


def show_history(context: CommandContext) -> None:
    """The requests of this session, and earlier sessions of this folder."""
    state = context.client.state
    open_one = (cut(on_one_line(state.request.text), _TITLE),) if state.request else ()
    asked = (*state.summaries, *open_one)
    for line in asked:
        context.writer.line(f"  {line}")
    if not list_sessions(context) and not asked:
        context.writer.line(text("session.none"))


def list_sessions(context: CommandContext) -> bool:
    """Earlier sessions, one a line; False if there are none."""
    here = context.client.state.session_id
    others = [one for one in context.client.sessions() if one.session_id != here and one.title]
    for one in others:
        when = one.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        context.writer.line(f"  {one.session_id}  {when}  {cut(on_one_line(one.title), _TITLE)}")
    return bool(others)


def show_settings(context: CommandContext) -> None:
    """What is set, and where."""
    for line in context.client.settings():
        context.writer.line(line)


def show_extensions(context: CommandContext, kind: str) -> None:
    """One kind of what the user brought along."""
    from duckflow.ui.views.extensions import LISTS  # noqa: PLC0415 - as above

    for line in LISTS[kind](context.client.extensions):
        context.writer.line(line)


def show_servers(context: CommandContext) -> None:
    """The MCP servers, and what they offer."""
    from duckflow.ui.views.extensions import server_lines  # noqa: PLC0415 - only when asked for

    for line in server_lines(context.client.servers()):
        context.writer.line(line)


def resume(context: CommandContext, argument: str) -> None:
    """Leave for an earlier session, or list them."""
    found = (
        [one for one in context.client.sessions() if one.session_id.startswith(argument)] if argument else []
    )
    if len(found) == 1:
        context.leave(found[0].session_id)
    elif argument:
        context.writer.line(text("session.no_such", session=on_one_line(argument)), "yellow")
    else:
        context.writer.line(text("session.resume" if list_sessions(context) else "session.none"))


ACTIONS: Mapping[str, Callable[[CommandContext, str], Awaitable[None] | None]] = {
    "help": lambda context, _: show_help(context),
    "status": lambda context, _: show_status(context),
    "goal": lambda context, _: show_goal(context),
    "plan": lambda context, _: context.writer.line(plan_tree(context.client.state)),
    "tasks": lambda context, _: context.writer.line(tasks_tree(context.client.state)),
    "cancel": lambda context, _: cancel_tasks(context),
    "diff": show_difference,
    "undo": undo,
    "rewind": rewind,
    "fork": fork,
    "mode": set_mode,
    "model": set_model,
    "effort": set_effort,
    "cost": lambda context, _: context.writer.raw(cost_text(context.client.state)),
    "context": lambda context, _: show_context(context),
    "rate": rate,
    "memory": show_memory,
    "mcp": lambda context, _: show_servers(context),
    "history": lambda context, _: show_history(context),
    "expand": lambda context, _: context.screen.expand(),
    "skills": lambda context, _: show_extensions(context, "skills"),
    "hooks": lambda context, _: show_extensions(context, "hooks"),
    "plugins": lambda context, _: show_extensions(context, "plugins"),
    "config": lambda context, _: show_settings(context),
    "new": lambda context, _: context.leave(""),
    "resume": resume,
    "quit": lambda context, _: context.leave(None),
}
