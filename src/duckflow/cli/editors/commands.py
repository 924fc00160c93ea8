"""The slash commands of the conversation, for an editor."""

from acp import schema

from duckflow.domain.session_client import SessionClient
from duckflow.ui.commands.actions import CommandContext, dispatch_in_turn
from duckflow.ui.commands.table import TypedCommand, listed_commands
from duckflow.ui.output.writer import Writer
from duckflow.ui.screen import Screen

LEFT_OUT = ("help", "fork", "expand", "new", "resume", "quit")
"""Commands that editors have themselves."""


def available_commands(client: SessionClient) -> list[schema.AvailableCommand]:
    """Return Duckflow's commands, the user's own, and the prompts of MCP servers."""
    return [
        schema.AvailableCommand(
            name=name,
            description=does,
            input=schema.AvailableCommandInput(schema.UnstructuredCommandInput(hint=takes))
            if takes
            else None,
        )
        for name, takes, does in listed_commands(client)
        if name not in LEFT_OUT
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
