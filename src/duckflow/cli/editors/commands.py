"""The slash commands of the conversation, for an editor."""

from acp import schema

from duckflow.domain.session_client import SessionClient
from duckflow.i18n.catalogue import text
from duckflow.ui.commands.actions import CommandContext
from duckflow.ui.commands.dispatch import dispatch_in_turn
from duckflow.ui.commands.table import COMMANDS, TypedCommand, own_commands
from duckflow.ui.output.escaping import on_one_line
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen

LEFT_OUT = ("help", "fork", "expand", "new", "resume", "quit")
"""Commands that editors have themselves."""


def available_commands(client: SessionClient) -> list[schema.AvailableCommand]:
    """Return Duckflow's commands, the user's own, and the prompts of MCP servers."""
    listed = [(one.name, text(f"commands.{one.name}"), one.takes) for one in COMMANDS.values()]
    listed = [one for one in listed if one[0] not in LEFT_OUT]
    own = own_commands(client.extensions, client.servers())
    listed += [(one.name, one.description, one.takes) for one in own if one.name not in COMMANDS]
    return [
        schema.AvailableCommand(
            name=name,
            description=on_one_line(does),
            input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=takes))
            if takes
            else None,
        )
        for name, does, takes in listed
    ]


async def run_command(client: SessionClient, typed: TypedCommand) -> str:
    """Run a command and return its output."""
    lines: list[str] = []
    writer = Writer(lines.extend)
    await dispatch_in_turn(CommandContext(client, writer, Screen(writer), _stay), typed)
    shown = "\n".join(line.rstrip("\n") for line in lines)
    return f"```\n{shown}\n```\n" if shown else ""


def _stay(_session: str | None) -> None:
    """The editor decides when to leave."""
