"""Functions that run the slash commands."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from duckflow.domain import commands
from duckflow.domain.errors import UserError
from duckflow.domain.habits import habit_of
from duckflow.domain.model import EFFORTS, EffortChoice
from duckflow.domain.modes import MODES, Mode
from duckflow.domain.session_client import EarlierSession, SessionClient, find_message
from duckflow.domain.text import cut, excerpt
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.table import (
    COMMANDS,
    GROUPS,
    IN_SECOND_WINDOW,
    Command,
    TypedCommand,
    find_command,
    is_bare_command,
    listed_commands,
    meant_command,
)
from duckflow.ui.input.keyboard import Keyboard
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.text_width import width_of, wrap_beside
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen
from duckflow.ui.views.agents import agent_lines
from duckflow.ui.views.events import effort_line, mode_line
from duckflow.ui.views.extensions import hook_lines, plugin_lines, server_lines, skill_lines
from duckflow.ui.views.goal import goal_text
from duckflow.ui.views.health import status_text
from duckflow.ui.views.live.progress import plan_tree, tasks_tree
from duckflow.ui.views.review import finding_details, how_to_see
from duckflow.ui.views.tables import context_text, cost_text, memory_lines, permission_lines
from duckflow.ui.views.undo import first_lines, undo_text

_MOST_RATING = 10
_MAX_NAME_WIDTH = 22
_TITLE = 60
_ALONE = ("help", "quit")
"""Commands without arguments. Words behind them are ignored, because they can't be a request."""
_MAX_UNDO_CHARS = 10
_LONGEST_NUMBER = 3
"""Digits of a finding's number; a longer one is a commit."""
_PARTS: Mapping[str, commands.RewindPart] = {"": "both", "files": "files", "conversation": "conversation"}


class CommandContext(NamedTuple):
    """Objects and functions that commands use."""

    client: SessionClient
    writer: Writer
    screen: Screen
    leave: Callable[[str | None], None]
    """Leaves the session: for another one by its id (empty: a new one), or with None to end the program."""
    guest: bool = False
    """True in a second window of a session, where only some commands work."""
    keyboard: Keyboard | None = None


@contextmanager
def errors_shown(writer: Writer) -> Generator[None]:
    """Show errors that are raised in the block and that the user can fix."""
    try:
        yield
    except UserError as error:
        writer.line(text("error.line", message=text(error.key, **error.values)), "red")


async def carry_out(context: CommandContext, command: commands.SessionCommand) -> commands.SessionResult:
    """Send a command to the session, and show the reason if the session refuses it."""
    result = await context.client.send(command)
    if result.objection:
        context.writer.line(text(result.objection), "yellow")
    return result


def dispatch_command(context: CommandContext, typed: TypedCommand) -> Awaitable[object] | None:
    """Run a slash command. Return what must be awaited, or None."""
    command = find_command(typed.name)
    if context.guest and (command is None or command.name not in IN_SECOND_WINDOW):
        context.writer.line(text("attach.not_here"), "yellow")
    elif command is not None and typed.argument and not command.takes and command.name not in _ALONE:
        context.writer.line(text("chat.takes_nothing", command=f"/{on_one_line(typed.name)}"), "yellow")
    elif command is not None:
        return ACTIONS[command.name](context, typed.argument)
    else:
        name, nearest = f"/{on_one_line(typed.name)}", meant_command(typed.name)
        key = "chat.unknown_command_near" if nearest else "chat.unknown_command"
        said = text(key, command=name, nearest=f"/{nearest}")
        unsent = [text("chat.unsent")] if typed.argument else []
        context.writer.line(" ".join([said, *unsent]), "yellow")
    return None


def follow_habit(context: CommandContext, line: str) -> bool:
    """Act on a word that people type in a shell (M1). Return False for every other line."""
    match habit_of(line):
        case "leave":
            context.leave(None)
        case "clear":
            context.writer.clear()
        case "help":
            show_help(context)
        case "shell":
            key = "habits.typed_cd" if line.startswith("cd") else "habits.typed_shell"
            context.writer.line(text(key, line=on_one_line(line)))
        case None:
            return False
    return True


def name_command(context: CommandContext, line: str) -> bool:
    """Say how to run a command whose name was typed without the slash. Return False for other lines."""
    if not is_bare_command(line):
        return False
    context.writer.line(text("habits.command", command=f"/{on_one_line(line.strip())}"))
    return True


async def dispatch_in_turn(context: CommandContext, typed: TypedCommand) -> None:
    """Run a slash command, and wait until it has ended."""
    with errors_shown(context.writer):
        work = dispatch_command(context, typed)
        if work is not None:
            await work


def show(context: CommandContext, lines: Iterable[str]) -> None:
    """Write these lines."""
    for line in lines:
        context.writer.line(line)


def show_help(context: CommandContext) -> None:
    """List all commands and keys."""
    groups = {
        text(f"help_groups.{group}"): [
            (
                " ".join((f"/{one.name}", *one.aliases[:1])),
                f"{text(f'commands.{one.name}')} {one.takes}".rstrip(),
            )
            for one in listed
        ]
        for group, listed in GROUPS.items()
    }
    others = [one for one in listed_commands(context.client) if one[0] not in COMMANDS]
    groups[text("help_groups.own")] = [
        (on_one_line(f"/{name}"), f"{does} {on_one_line(takes)}".rstrip()) for name, takes, does in others
    ]
    groups[text("help_groups.keys")] = [(keys, text(f"keys.{does}_does")) for does, keys in _KEYS.items()]
    writer = context.writer
    wide = min(max(width_of(name) for rows in groups.values() for name, _ in rows), _MAX_NAME_WIDTH)
    for title, rows in groups.items():
        if rows:
            writer.line(f"\n{title}", "bold")
        for name, does in rows:
            before = f"  {name}{' ' * max(wide - width_of(name), 0)}  "
            writer.line(wrap_beside(before, does, writer.columns) if writer.formatted else before + does)
    writer.line(f"\n{text('chat.help')}", "dim")


_KEYS = {
    "stop": "Esc, Ctrl-C",
    "back": "Esc Esc",
    "newline": "Alt-Enter, Ctrl-J",
    "mode": "Shift-Tab",
    "expand": "Ctrl-O",
    "file": "@path",
    "picture": "Ctrl-V",
    "shell": "!command",
    "search": "Ctrl-R",
    "leave": "Ctrl-D",
}


def show_status(context: CommandContext) -> None:
    """Show the vitals, the check-up and the loop limit."""
    columns = context.writer.columns if context.writer.formatted else None
    context.writer.line(status_text(context.client.state, columns))


def must_wait(context: CommandContext, command: Command) -> bool:
    """Return whether a command must wait until the current work has ended."""
    return not command.now or (command.name == "cancel" and _cancel_waits(context))


def cancel_tasks(context: CommandContext) -> Awaitable[object] | None:
    """Stop background tasks at once, or background commands after the work. A guest stops the work."""
    command = commands.CancelWork() if context.guest else commands.StopBackground()
    if _cancel_waits(context):
        return carry_out(context, command)
    context.client.send(command)
    if not context.client.state.background_runs:
        context.writer.line(text("tasks.none"))
    return None


def _cancel_waits(context: CommandContext) -> bool:
    """Return whether cancelling must wait: for a guest, or for commands whose effects need a decision."""
    state = context.client.state
    return context.guest or (bool(state.background_commands) and not state.background_runs)


def say_later(context: CommandContext, argument: str) -> None:
    """Send a message that waits until the current work has ended."""
    if argument:
        context.client.send(commands.SayMessage(text=argument, later=True))
    else:
        context.writer.line(text("chat.later_usage"), "yellow")


async def show_difference(context: CommandContext, argument: str) -> None:
    """Show the changes since the last request or the session began."""
    if argument not in ("", "session"):
        context.writer.line(text("diff.wanted", wanted=on_one_line(argument)), "yellow")
    elif (difference := await context.client.diff(session=argument == "session")).strip():
        context.writer.raw(*difference_lines(difference, context.writer))
    else:
        context.writer.line(text("diff.none"))


async def review(context: CommandContext, argument: str) -> None:
    """Review changes, or show a finding of the last review by its number."""
    report = context.client.state.review
    if not argument.isdecimal() or len(argument) > _LONGEST_NUMBER:
        await carry_out(context, commands.ReviewChanges(changes=argument))
        report = context.client.state.review
        if report is not None and (hint := how_to_see(report)):
            context.writer.line(hint, "dim")
    elif report is None:
        context.writer.line(text("review.none_yet"), "yellow")
    elif 0 < int(argument) <= len(report.findings):
        context.writer.line(finding_details(int(argument), report.findings[int(argument) - 1]))
    else:
        shown = text("review.no_such_finding", number=argument, count=len(report.findings))
        context.writer.line(shown, "yellow")


async def undo(context: CommandContext, argument: str) -> None:
    """Undo changes."""
    done = await carry_out(context, commands.UndoWork(wanted=argument[:_MAX_UNDO_CHARS]))
    if done.report is not None:
        context.writer.line(undo_text(done.report))


async def rewind(context: CommandContext, argument: str) -> None:
    """Return to an earlier message, or list the messages."""
    number, *parts = argument.split()[:2] or [""]
    part = parts[0] if parts else ""
    if not number:
        for place, *_, said in context.client.messages():
            context.writer.line(f"  {place}. {cut(on_one_line(said), _TITLE)}")
        context.writer.line(text("rewind.usage"), "dim")
    elif not number.isdecimal() or part not in _PARTS:
        context.writer.line(text("rewind.usage"), "yellow")
    else:
        message = find_message(context.client.messages(), int(number))
        done = await carry_out(context, commands.RewindWork(before=message.seq, part=_PARTS[part]))
        if done.report is not None and (done.report.actions or done.report.commands):
            context.writer.line(undo_text(done.report))
        if part != "files" and not done.objection and context.keyboard is not None:
            context.keyboard.swap_line(message.text)  # so that the user can change it


async def fork(context: CommandContext, argument: str) -> None:
    """Continue in a copy of this session, up to now or up to a message."""
    if argument and not argument.isdecimal():
        context.writer.line(text("rewind.usage"), "yellow")
        return
    before = find_message(context.client.messages(), int(argument)).seq if argument else None
    forked = await context.client.send(commands.ForkSession(before=before))
    if forked.newer:
        context.writer.line(text("rewind.newer", files=", ".join(first_lines(forked.newer))), "yellow")
    context.writer.line(text("rewind.copied"), "dim")
    context.leave(forked.session_id)


def set_mode(context: CommandContext, argument: str) -> None:
    """Change the permission mode, or show it."""
    wanted: Mode | None = next((mode for mode in MODES if mode == argument), None)
    if wanted is not None:
        context.client.send(commands.SetMode(mode=wanted))
    elif argument:
        unknown = text("mode.unknown", mode=on_one_line(argument), modes=", ".join(MODES))
        context.writer.line(unknown, "yellow")
    else:
        context.writer.line(mode_line(context.client.state.mode))


def change_permissions(context: CommandContext, argument: str) -> Awaitable[object] | None:
    """Keep or revoke a permission by its number, or list all of them."""
    listed = context.client.permissions()
    word, number, where, *_ = *argument.split(), "", "", ""
    change = _PERMISSION_CHANGES.get((word, where))
    if change and number.isdecimal() and 1 <= int(number) <= len(listed):
        kind = listed[int(number) - 1].kind
        return carry_out(context, commands.ChangePermission(kind=kind, change=change))
    shown = [text("permissions.usage")] if word else permission_lines(listed, context.client.servers())
    show(context, [mode_line(context.client.state.mode), *shown])
    return None


_PERMISSION_CHANGES: Mapping[tuple[str, str], commands.PermissionChange] = {
    ("keep", ""): "here",
    ("keep", "everywhere"): "everywhere",
    ("revoke", ""): "revoked",
}


async def set_model(context: CommandContext, argument: str) -> None:
    """Change the model, or show it."""
    if argument:
        await context.client.send(commands.SetModel(name=argument))
    else:
        context.writer.line(text("model.now", model=context.client.state.model))


def set_effort(context: CommandContext, argument: str) -> None:
    """Change how much models think, or show the current value."""
    wanted: EffortChoice | None = next((effort for effort in EFFORTS if effort == argument.casefold()), None)
    if wanted is not None:
        context.client.send(commands.SetEffort(effort=wanted))
    elif argument:
        unknown = text("effort.unknown", effort=on_one_line(argument), efforts=", ".join(EFFORTS))
        context.writer.line(unknown, "yellow")
    else:
        context.writer.line(effort_line(context.client.state.effort))


async def show_context(context: CommandContext) -> None:
    """Show how much of the model's context window each part of the prompt uses."""
    context.writer.raw(context_text(await context.client.context(), context.writer.columns))


async def compact(context: CommandContext) -> None:
    """Replace older parts of the conversation by a recap, and say how much shorter the prompt is."""
    before = sum((await context.client.context()).tokens.values())
    await carry_out(context, commands.CompactConversation())
    after = sum((await context.client.context()).tokens.values())
    key = "context.compacted" if after < before else "context.not_compacted"
    context.writer.line(text(key, before=f"{before:,}", after=f"{after:,}"))


async def rate(context: CommandContext, argument: str) -> None:
    """Record the user's rating of the last request."""
    if argument.isdecimal() and 1 <= int(argument) <= _MOST_RATING:
        rated = await context.client.send(commands.RateRequest(rating=int(argument)))
        context.writer.line(text(rated.objection or "stats.rated", rating=int(argument)))
    else:
        context.writer.line(text("stats.rate_usage"), "yellow")


async def show_memory(context: CommandContext, argument: str) -> None:
    """List the memories, or delete some of them."""
    word, *wanted = argument.split() or [""]
    if word == "delete" and wanted and all(one.isdecimal() for one in wanted):
        numbers = tuple(int(one) for one in wanted)
        gone = await context.client.send(commands.ForgetMemories(numbers=numbers))
        context.writer.line(text("memory.deleted", count=gone.forgotten))
    elif word:
        context.writer.line(text("memory.usage"), "yellow")
    else:
        show(context, memory_lines(context.client.memories(), context.client.state.workspace))


def show_settings(context: CommandContext, argument: str) -> None:
    """List the settings that differ from their defaults, or all settings whose names contain a word."""
    listed = context.client.settings(every=bool(argument))
    found = [line for line in listed if argument in line.partition(" = ")[0]]
    show(context, [*found, text("config.more")])


def show_history(context: CommandContext, words: str) -> None:
    """List requests and sessions of this folder, or the sessions in which someone said these words."""
    if words:
        found = context.client.search(words)
        for session, said in found:
            context.writer.line(_session_line(session))
            context.writer.line(f"      {excerpt(said, words)}", "dim")
        context.writer.line(text("session.resume" if found else "session.no_match", words=on_one_line(words)))
        return
    state = context.client.state
    asked = [*state.summaries, *([cut(on_one_line(state.request.text), _TITLE)] if state.request else [])]
    show(context, [f"  {line}" for line in asked])
    if not list_sessions(context) and not asked:
        context.writer.line(text("session.none"))


def list_sessions(context: CommandContext) -> bool:
    """List earlier sessions, one per line. Return False if there are none."""
    here = context.client.state.session_id
    others = [one for one in context.client.sessions() if one.session_id != here and one.title]
    show(context, map(_session_line, others))
    return bool(others)


def _session_line(session: EarlierSession) -> str:
    when = session.updated.astimezone().strftime("%Y-%m-%d %H:%M")
    return f"  {session.session_id}  {when}  {cut(on_one_line(session.title), _TITLE)}"


def resume(context: CommandContext, argument: str) -> None:
    """Continue an earlier session, or list the earlier sessions."""
    found = [one for one in context.client.sessions() if one.session_id.startswith(argument)]
    if argument and len(found) == 1:
        context.leave(found[0].session_id)
    elif argument:
        context.writer.line(text("session.no_such", session=on_one_line(argument)), "yellow")
    else:
        context.writer.line(text("session.resume" if list_sessions(context) else "session.no_other"))


ACTIONS: Mapping[str, Callable[[CommandContext, str], Awaitable[object] | None]] = {
    "help": lambda context, _: show_help(context),
    "status": lambda context, _: show_status(context),
    "goal": lambda context, _: context.writer.line(goal_text(context.client.state)),
    "plan": lambda context, _: context.writer.line(plan_tree(context.client.state)),
    "tasks": lambda context, _: context.writer.line(tasks_tree(context.client.state)),
    "cancel": lambda context, _: cancel_tasks(context),
    "later": say_later,
    "diff": show_difference,
    "review": review,
    "undo": undo,
    "rewind": rewind,
    "fork": fork,
    "mode": set_mode,
    "model": set_model,
    "permissions": change_permissions,
    "effort": set_effort,
    "cost": lambda context, _: context.writer.raw(cost_text(context.client.state)),
    "context": lambda context, _: show_context(context),
    "compact": lambda context, _: compact(context),
    "init": lambda context, _: carry_out(context, commands.SayMessage(text=text("init.request"))),
    "rate": rate,
    "memory": show_memory,
    "mcp": lambda context, _: show(context, server_lines(context.client.servers())),
    "history": show_history,
    "expand": lambda context, _: context.screen.expand(),
    "skills": lambda context, _: show(context, skill_lines(context.client.extensions)),
    "hooks": lambda context, _: show(context, hook_lines(context.client.extensions)),
    "agents": lambda context, _: show(
        context, agent_lines(context.client.state, context.client.extensions.agents)
    ),
    "plugins": lambda context, _: show(context, plugin_lines(context.client.extensions)),
    "config": show_settings,
    "new": lambda context, _: context.leave(""),
    "resume": resume,
    "quit": lambda context, _: context.leave(None),
}
