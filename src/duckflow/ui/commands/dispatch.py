"""Running a command: the one that was typed, the only one that begins so, or a hint at which was meant."""

import asyncio
from collections.abc import Awaitable

from duckflow.domain.errors import UserError
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import ACTIONS, CommandContext
from duckflow.ui.commands.table import TypedCommand, find_command, nearest_command
from duckflow.ui.output.escaping import on_one_line


class Exit:
    """The way out: for good, or for another session. Whoever asks first decides."""

    def __init__(self) -> None:
        self.taken: asyncio.Future[str | None] = asyncio.get_running_loop().create_future()

    def leave(self, session: str | None = None) -> None:
        """End the conversation; with a session, go on with that one (empty: a new one)."""
        if not self.taken.done():
            self.taken.set_result(session)


def dispatch_command(context: CommandContext, typed: TypedCommand) -> Awaitable[None] | None:
    """Do what a command says; what takes time is to be waited for."""
    command = find_command(typed.name)
    if command is None:
        _tell_unknown(context, typed)
        return None
    return ACTIONS[command.name](context, typed.argument)


async def dispatch_in_turn(context: CommandContext, typed: TypedCommand) -> None:
    """The same, to its end; what the user can fix is told."""
    try:
        going_on = dispatch_command(context, typed)
        if going_on is not None:
            await going_on
    except UserError as error:
        context.writer.line(text("error.line", message=text(error.key, **error.values)), "red")


def _tell_unknown(context: CommandContext, typed: TypedCommand) -> None:
    name, nearest = f"/{on_one_line(typed.name)}", nearest_command(typed.name)
    if nearest is None:
        context.writer.line(text("chat.unknown_command", command=name), "yellow")
    else:
        context.writer.line(text("chat.unknown_command_near", command=name, nearest=f"/{nearest}"), "yellow")
