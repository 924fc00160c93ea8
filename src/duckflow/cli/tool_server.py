"""`duckflow mcp serve`: an MCP server with which other agents try commands on a copy of the folder (O7).

A client can't apply anything by itself. The user is asked through the client (elicitation), or applies it in
a terminal with `duckflow try --apply ID`, unless they started the server with `--apply`.
"""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import Annotated

from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context, Elicit, MCPServer, Resolve
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

from duckflow.api import find_session
from duckflow.app.opening import Opening
from duckflow.app.trial import Trial
from duckflow.config.loading import load_as_trusted
from duckflow.config.version import __version__
from duckflow.domain.errors import UsageError, UserError
from duckflow.domain.events import ActionFinished, StoredEvent
from duckflow.domain.hosts import Host, covers, read_host
from duckflow.domain.live_updates import LiveUpdate
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.questions.approval import Approval
from duckflow.i18n.catalogue import text
from duckflow.ui.views.approval import points_text

MAX_DIFFERENCE = 20_000
"""Characters of a difference that a result or a question contains."""
PROGRESS_S = 5.0
"""Seconds between two signs of life, so that clients do not give up on a long command."""
_READ_MORE = lazy_regex(r'; shell\.read\(id="e\d+", start, end\) shows others')
"""Advice in a result to use an operation that clients do not have."""

INSTRUCTIONS = """\
Try shell commands on a copy of the user's folder. The folder itself does not change: you get the exit code,
the output and the exact difference. apply_changes then applies that difference, if the user agrees."""


class Consent(BaseModel):
    """The user's answer to a question that the client shows."""

    yes: bool = Field(title="OK?", description="Yes or no")


Answer = ElicitationResult[Consent]


def serve_in(folder: Path, hosts: Sequence[str], *, network: bool, apply: bool) -> None:
    """Serve one client over standard input and output, until it closes them."""
    try:
        named = tuple(map(read_host, hosts))
    except ValueError as exc:
        raise UsageError("trial.no_host", reason=exc) from exc
    ToolServer(folder.resolve(), named, network=network, apply=apply).make().run("stdio")


class ToolServer:
    """The tools, for one folder."""

    def __init__(self, folder: Path, hosts: Sequence[Host], *, network: bool, apply: bool) -> None:
        """Take what the user allowed when they started the server."""
        self._folder, self._hosts, self._network, self._apply = folder, frozenset(hosts), network, apply
        self._loaded = load_as_trusted(folder)

    def make(self) -> MCPServer:
        """Return the server with its tools."""
        server = MCPServer("duckflow", version=__version__, instructions=INSTRUCTIONS, log_level="WARNING")

        async def connection(
            ctx: Context, hosts: list[str] | None = None, *, network: bool = False
        ) -> Consent | Elicit[Consent]:
            return self._connection(ctx, hosts or (), network=network)

        async def changes(ctx: Context, trial: str) -> Consent | Elicit[Consent]:
            return await self._changes(ctx, trial)

        @server.tool(
            structured_output=False, annotations=ToolAnnotations(read_only_hint=True, open_world_hint=False)
        )
        async def try_command(
            ctx: Context,
            command: Annotated[str, Field(description="A command line for bash")],
            consent: Annotated[Answer, Resolve(connection)],
            hosts: Annotated[
                list[str] | None,
                Field(description='Hosts that it needs; "registries" stands for those of package managers'),
            ] = None,
            *,
            network: Annotated[bool, Field(description="Whether it needs the whole network")] = False,
        ) -> str:
            """Run a command on a copy of the folder. Nothing changes until apply_changes."""
            if not _agreed(consent):
                raise ToolError(text("serve.no_network", hosts=", ".join(hosts or ()) or "--network"))
            return await self._try(ctx, command, _hosts(hosts or ()), network=network)

        @server.tool(
            structured_output=False, annotations=ToolAnnotations(destructive_hint=True, open_world_hint=False)
        )
        async def apply_changes(
            trial: Annotated[str, Field(description="Id that try_command returned")],
            consent: Annotated[Answer, Resolve(changes)],
        ) -> str:
            """Apply what a tried command changed. The user can undo it."""
            return await self._settle(trial, yes=True, agreed=_agreed(consent))

        @server.tool(
            structured_output=False,
            annotations=ToolAnnotations(destructive_hint=False, open_world_hint=False),
        )
        async def discard_changes(
            trial: Annotated[str, Field(description="Id that try_command returned")],
        ) -> str:
            """Forget what a tried command changed."""
            return await self._settle(trial, yes=False, agreed=True)

        return server

    def _connection(self, ctx: Context, named: Sequence[str], *, network: bool) -> Consent | Elicit[Consent]:
        """Return whether a command may use the network, or the question."""
        missing = [] if self._network else [one for one in _hosts(named) if not covers(self._hosts, one)]
        if not missing and (self._network or not network):
            return Consent(yes=True)
        if not _can_ask(ctx):
            return Consent(yes=False)
        wanted = text("serve.whole_network") if network else ", ".join(missing)
        return Elicit(text("serve.ask_network", hosts=wanted), Consent)

    async def _changes(self, ctx: Context, trial_id: str) -> Consent | Elicit[Consent]:
        """Return whether changes may be applied, or the question."""
        if self._apply:
            return Consent(yes=True)
        if not _can_ask(ctx):
            return Consent(yes=False)
        async with self._reopened(trial_id) as (_, asked):
            return Elicit(f"{_shown(asked)}\n\n{text('serve.ask_apply')}", Consent)

    async def _try(self, ctx: Context, command: str, hosts: tuple[Host, ...], *, network: bool) -> str:
        ended = _Ended()
        async with aclosing(Trial(Opening(self._loaded, self._folder), ended)) as trial:
            signs = asyncio.create_task(_signs_of_life(ctx))
            try:
                asked = await trial.run(command, network=network, hosts=hosts)
            except UserError as error:
                raise ToolError(str(error)) from error
            finally:
                signs.cancel()
            said = "\n".join(ended.texts)
            if asked is None:
                return said
            return f"{said}\n\n{_shown(asked)}\n\n{text('serve.waits', trial=trial.session_id)}"

    async def _settle(self, trial_id: str, *, yes: bool, agreed: bool) -> str:
        async with self._reopened(trial_id) as (trial, asked):
            if not agreed:
                return text("serve.not_applied", trial=trial_id)
            again = await trial.answer(asked, yes=yes)
            if again is not None:
                return f"{text('serve.changed')}\n\n{_shown(again)}"
            return text("serve.applied" if yes else "serve.discarded")

    @asynccontextmanager
    async def _reopened(self, trial_id: str) -> AsyncGenerator[tuple[Trial, Approval]]:
        """Open the session of an earlier command whose changes wait. Raise ToolError if none is waiting."""
        try:
            found = find_session(trial_id)
            if Path(found.workspace) != self._folder:
                raise ToolError(text("trial.nothing_waits", session=trial_id))
            trial = Trial(Opening(self._loaded, self._folder, session_id=found.id), lambda _: None)
        except UserError as error:
            raise ToolError(str(error)) from error
        async with aclosing(trial):
            if trial.question is None:
                raise ToolError(text("trial.nothing_waits", session=trial_id))
            yield trial, trial.question


class _Ended:
    """Keeps the results of a command, as a model would see them."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def __call__(self, what: StoredEvent | LiveUpdate) -> None:
        if isinstance(what, StoredEvent) and isinstance(what.event, ActionFinished):
            self.texts.append(_READ_MORE.sub("; print only the lines you need", what.event.text))


def _shown(asked: Approval) -> str:
    """Return the question about changes with their difference."""
    difference = asked.difference
    if len(difference) > MAX_DIFFERENCE:
        difference = f"{difference[:MAX_DIFFERENCE]}\n{text('serve.longer')}"
    return f"{points_text(asked)}\n{difference}".rstrip()


def _hosts(named: Sequence[str]) -> tuple[Host, ...]:
    try:
        return tuple(map(read_host, named))
    except ValueError as exc:
        raise ToolError(str(exc)) from exc


def _can_ask(ctx: Context) -> bool:
    able = ctx.client_capabilities
    return able is not None and able.elicitation is not None


def _agreed(answer: Answer) -> bool:
    return isinstance(answer, AcceptedElicitation) and answer.data.yes


async def _signs_of_life(ctx: Context) -> None:
    seconds = 0.0
    while True:
        await asyncio.sleep(PROGRESS_S)
        seconds += PROGRESS_S
        await ctx.report_progress(seconds)
