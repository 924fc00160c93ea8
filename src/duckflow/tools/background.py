"""Tools shell.start, shell.read and shell.stop: commands that run in the background (G11).

They share one copy of the folder and one loopback network with `shell.run`. Their effects are applied with
those of the next command, when one of them ends, and at the latest at the end of the request.
"""

import asyncio
from typing import Any

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.events import BackgroundCommand, CommandEnded, CommandStarted, Event
from duckflow.domain.frozen import Frozen
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.background import BackgroundOutput
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.catalogue import Proposal, Tool, ToolResult
from duckflow.tools.files.reading import ReadFile, excerpt_of
from duckflow.tools.shell import hidden_line, waiting_effects

_EVIDENCE = lazy_regex(r"e\d+")

FIRST_WORDS_S = 0.5
"""Time in seconds to see whether a command fails at its start, and its first output, such as a port."""

NEWS_S = 10.0
"""Time in seconds that shell.read waits for new output."""


class StartCommand(Frozen):
    """Arguments of shell.start."""

    command: str = Field(description="for bash, in the workspace")


class CommandById(Frozen):
    """Arguments of shell.stop."""

    id: str = Field(description="as shell.start gave it")


class ReadOutput(Frozen):
    """Arguments of shell.read."""

    id: str = Field(description="as shell.start gave it, or the evidence id of a result shown in part")
    start: int = Field(default=1, ge=1, description="first line, from 1, of such a result")
    end: int | None = Field(default=None, ge=1, description="last line of it")


def background_tools(shell: Shell) -> tuple[Tool[Any], ...]:
    """Return the tools for the background commands of one shell."""
    known: dict[str, BackgroundCommand] = {}

    async def start(args: StartCommand, _access: Access) -> ToolResult:
        command = BackgroundCommand(id=await shell.start(args.command), command=args.command)
        known[command.id] = command
        said = await shell.read(command.id, FIRST_WORDS_S, for_end=True)
        return await report(command, said, CommandStarted(command=command))

    async def read(args: ReadOutput, access: Access) -> ToolResult:
        if args.id not in known and (kept := await asyncio.to_thread(access.output, args.id)) is not None:
            lines = ReadFile(path=args.id, start=args.start, end=args.end)
            return ToolResult(text=excerpt_of(f"result {args.id}", EncodedText(kept), lines), exact=True)
        return await report(find(args.id), await shell.read(args.id, NEWS_S))

    async def stop(args: CommandById, _access: Access) -> ToolResult:
        return await report(find(args.id), await shell.stop(args.id))

    async def report(command: BackgroundCommand, said: BackgroundOutput, *events: Event) -> ToolResult:
        lines = (_first_line(command, said), said.text.rstrip("\n"), hidden_line(said.hidden))
        text = "\n".join(line for line in lines if line)
        if said.running:
            return ToolResult(text=text, events=events, exact=True)
        known.pop(command.id, None)
        how = "stopped" if said.stopped == "asked" else "ended"
        ended = CommandEnded(command=command, how=how, exit_code=said.exit_code)
        found = await shell.background_effects()
        well = how == "stopped" or said.exit_code == 0
        ending = "succeeded" if well else "failed"
        waiting = waiting_effects(command.command, found, ending) if found else None
        return ToolResult(text=text, events=(*events, ended), exact=True, waiting=waiting)

    def find(command_id: str) -> BackgroundCommand:
        if command_id not in known:
            if _EVIDENCE.fullmatch(command_id):
                raise ToolError(f"{command_id} was shown whole, or is no longer kept: look at it again.")
            raise ToolError(f"No background command {command_id} runs; known: {', '.join(known) or 'none'}.")
        return known[command_id]

    async def propose_start(args: StartCommand, workspace: Workspace) -> Proposal:
        if not (await shell.sandbox()).copies:
            raise ToolError("Nothing can run in the background here; use shell.run, with a timeout.")
        said = f"# in {workspace.root}, in the background\n{args.command}\n"
        return Proposal(said, content=args.command, command=args.command)

    async def propose_read(args: ReadOutput, _workspace: Workspace) -> Proposal:
        return Proposal() if _EVIDENCE.fullmatch(args.id) else Proposal(f"{find(args.id).command}\n")

    async def propose_known(args: CommandById, _workspace: Workspace) -> Proposal:
        return Proposal(f"{find(args.id).command}\n")

    return (
        Tool(
            operation="shell.start",
            args=StartCommand,
            summary="run a command (a server) in the background; gives its id",
            effect="execute",
            run=start,
            propose=propose_start,
        ),
        Tool(
            operation="shell.read",
            args=ReadOutput,
            summary="what the command id wrote since; of a cut result id (e1), lines start to end",
            effect="execute",
            run=read,
            propose=propose_read,
        ),
        Tool(
            operation="shell.stop",
            args=CommandById,
            summary="end the command id",
            effect="execute",
            run=stop,
            propose=propose_known,
        ),
    )


def _first_line(command: BackgroundCommand, said: BackgroundOutput) -> str:
    if said.running:
        return f"{command.id} runs" if said.text else f"{command.id} runs, and wrote nothing new"
    if said.stopped == "asked":
        return f"{command.id} was stopped"
    if said.error:
        return f"{command.id} could not be run: {said.error}"
    if said.stopped:
        return f"{command.id} was stopped at a limit: {said.stopped}"
    return f"{command.id} ended with exit code {said.exit_code}"
