"""Tools shell.run, shell.start, shell.read and shell.stop: commands in the sandbox (G11).

A command may run on a copy of the folder; its file changes ("effects") are applied to the folder afterwards.
Background commands share one copy and one loopback network with the commands of `shell.run`. Their effects
are applied after the next command, when one of them ends or is stopped, and at the end of the request.
"""

import asyncio
import signal
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.events import BackgroundCommand, CommandEnded, CommandStarted, Event
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.hosts import Host
from duckflow.domain.lines import TextLine, line
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import some_of
from duckflow.i18n.catalogue import text
from duckflow.i18n.hosts import host_names
from duckflow.safety.files.access import Access
from duckflow.safety.files.encoding import EncodedText
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.paths import printable
from duckflow.safety.sandbox.background import BackgroundOutput
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.copy.copy_writer import CHANGED
from duckflow.safety.sandbox.output import Emit
from duckflow.safety.sandbox.shell import Shell
from duckflow.safety.sandbox.view.confinement import explain_limit
from duckflow.tools.catalogue import CommandEnd, Proposal, TakeOver, Tool, ToolResult
from duckflow.tools.effects_text import dropped_line, effects_line, effects_told, told_paths
from duckflow.tools.files.reading import ReadFile, excerpt_of

RUN = "shell.run"
TAKE_OVER = "shell.take_over"

FIRST_WORDS_S = 0.5
"""Seconds that shell.start waits for a command's first output, such as a port, or for its failure."""

NEWS_S = 10.0
"""Seconds that shell.read waits for new output."""

_EVIDENCE = lazy_regex(r"e\d+")
_REFUSALS = ("Read-only file system", "Permission denied", "Operation not permitted")
_UNREACHABLE = ("Could not resolve", "name resolution", "Network is unreachable", "getaddrinfo")
_KEPT_IN = "(Commands write only in the workspace, not in what else is mounted there, and in $TMPDIR{more}.)"
_OF_OTHERS = "Value too large for defined data type"
_NOT_COPIED = "(A file of another user or group can't be changed in place here; write a new file instead.)"
_NO_COPY = ", and not in .git or protected files"
_NOT_AT_TOP = ", nor at the workspace's top: make files in a folder"
_NO_NETWORK = "(There is no network here; if the command needs it, name the hosts, and the user is asked.)"
_NOT_ALLOWED = (
    "(Hosts that it tried to reach and may not: {hosts}. If it needs them, name them in hosts, or write "
    "registries for those of packages; the user is asked.)"
)


class Run(Frozen):
    """Arguments of shell.run."""

    command: str = Field(description="for bash, in the workspace")
    timeout_s: Annotated[int, Field(ge=1)] | None = Field(default=None, description="seconds it may take")
    network: bool = Field(default=False, description="all of it; asks the user")
    hosts: tuple[Host, ...] = Field(
        default=(),
        max_length=20,
        description="it may reach, such as github.com, or registries; asks the user",
    )
    secrets: tuple[str, ...] = Field(default=(), description="such as .env; asks the user")


class StartCommand(Frozen):
    """Arguments of shell.start."""

    command: str = Field(description="for bash, in the workspace")
    hosts: tuple[Host, ...] = Field(default=(), max_length=20, description="as for shell.run")


class CommandById(Frozen):
    """Arguments of shell.stop."""

    id: str = Field(description="as shell.start gave it")


class ReadOutput(Frozen):
    """Arguments of shell.read."""

    id: str = Field(description="as shell.start gave it, or the evidence id of a result shown in part")
    start: int = Field(default=1, ge=1, description="first line, from 1, of such a result")
    end: int | None = Field(default=None, ge=1, description="last line of it")


def shell_tools(shell: Shell, emit: Emit) -> tuple[Tool[Any], ...]:
    """Return the tools of one shell. `emit` receives the output as it arrives."""

    async def run(args: Run, _access: Access) -> ToolResult:
        longest = shell.settings.max_timeout_s
        if args.timeout_s is not None and args.timeout_s > longest:
            raise ToolError(f"timeout_s may be {longest} at most.")
        seconds = args.timeout_s or shell.settings.timeout_s
        result = await shell.run(
            args.command,
            timeout_s=seconds,
            network=args.network,
            hosts=args.hosts,
            secrets=args.secrets,
            emit=emit,
        )
        ended: CommandEnd = "succeeded" if result.exit_code == 0 or result.ran_through else "failed"
        hint, meaning = await _hint(shell, result, network=args.network)
        told = [line("action.hidden", paths=", ".join(result.hidden))] if result.hidden else []
        told += [line(meaning)] if meaning else []
        told += [line("action.changed", paths=some_of(result.changed))] if result.changed else []
        first = _run_line(result, shell, seconds)
        return ToolResult(
            text=_lines(first, result.output.rstrip("\n")),
            whole=result.whole,
            changed=result.changed,
            exit_code=result.exit_code,
            exact=result.effects is not None,
            reason=_stop_reason(result, shell, seconds),
            told=tuple(told),
            waiting=_waiting(args.command, result, "stopped" if result.stopped is not None else ended),
        ).with_lines(_hidden_line(result.hidden), hint)

    async def propose(args: Run, workspace: Workspace) -> Proposal:
        hidden = await shell.hidden(args.secrets) if args.secrets else ()
        if others := [path for path in args.secrets if path not in hidden]:
            raise ToolError(f"{', '.join(others)}: no file with secrets; leave it out of secrets.")
        network = await _network(shell, args.hosts, whole=args.network)
        head = [text("approval.difference.runs_in", path=workspace.root), *network.lines]
        if args.secrets:
            head.append(text("approval.difference.sees", paths=", ".join(args.secrets)))
        return Proposal(
            "".join(f"{one}\n" for one in (*head, args.command)),
            content=args.command,
            command=args.command,
            network=network.whole,
            hosts=network.hosts,
            secrets=args.secrets,
        )

    async def apply(args: TakeOver, access: Access) -> ToolResult:
        effects = await shell.effects(args.copy_id)
        return await apply_waiting(shell, args, effects, access, conflicts=effects.conflicts)

    return (
        Tool(
            operation=RUN,
            args=Run,
            summary="run a bash command in a sandbox; long output is cut in its middle",
            effect="execute",
            run=run,
            propose=propose,
        ),
        Tool(
            operation=TAKE_OVER,
            args=TakeOver,
            summary="make what a command did real",
            effect="write",
            run=apply,
            by_program=True,
        ),
    )


def background_tools(shell: Shell) -> tuple[Tool[Any], ...]:
    """Return the tools for the background commands of one shell."""
    known: dict[str, BackgroundCommand] = {}

    async def start(args: StartCommand, _access: Access) -> ToolResult:
        started = await shell.start(args.command, hosts=args.hosts)
        command = BackgroundCommand(id=started, command=args.command)
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
        text = _lines(_background_line(command, said), said.text.rstrip("\n"))
        hidden = (line("action.hidden", paths=", ".join(said.hidden)),) if said.hidden else ()
        result = ToolResult(text=text, exact=True, told=hidden).with_lines(_hidden_line(said.hidden))
        if said.running:
            return replace(result, events=events)
        known.pop(command.id, None)
        how = "stopped" if said.stopped == "asked" else "ended"
        ended = CommandEnded(command=command, how=how, exit_code=said.exit_code)
        ending = "succeeded" if how == "stopped" or said.exit_code == 0 else "failed"
        waiting = _waiting(command.command, await shell.background_effects(), ending)
        return replace(result, events=(*events, ended), waiting=waiting)

    def find(command_id: str) -> BackgroundCommand:
        if command_id not in known:
            if _EVIDENCE.fullmatch(command_id):
                raise ToolError(f"{command_id} was shown whole, or is no longer kept: look at it again.")
            raise ToolError(f"No background command {command_id} runs; known: {', '.join(known) or 'none'}.")
        return known[command_id]

    async def propose_start(args: StartCommand, workspace: Workspace) -> Proposal:
        if not (await shell.sandbox()).copies:
            raise ToolError("Nothing can run in the background here; use shell.run, with a timeout.")
        network = await _network(shell, args.hosts)
        head = (text("approval.difference.starts_in", path=workspace.root), *network.lines)
        said = "".join(f"{one}\n" for one in (*head, args.command))
        return Proposal(said, content=args.command, command=args.command, hosts=network.hosts)

    async def propose_known(args: CommandById | ReadOutput, _workspace: Workspace) -> Proposal:
        shown = isinstance(args, ReadOutput) and _EVIDENCE.fullmatch(args.id)
        return Proposal() if shown else Proposal(f"{find(args.id).command}\n")

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
            propose=propose_known,
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


class _NetworkAsked(NamedTuple):
    lines: tuple[str, ...]
    whole: bool
    hosts: tuple[str, ...] = ()


async def _network(shell: Shell, hosts: tuple[str, ...], *, whole: bool = False) -> _NetworkAsked:
    """Return which part of the network a command asks for. Without a copy it is all or nothing."""
    if whole or shell.settings.network or (hosts and not (await shell.sandbox()).copies):
        return _NetworkAsked((text("approval.difference.with_network"),), whole or bool(hosts))
    named = (text("approval.difference.reaches", hosts=some_of(host_names(hosts), most=len(hosts))),)
    return _NetworkAsked(named if hosts else (), whole=False, hosts=hosts)


async def apply_waiting(
    shell: Shell, waiting: TakeOver, effects: Effects, access: Access, *, conflicts: Iterable[str] = ()
) -> ToolResult:
    """Apply a command's file changes to the workspace. The user agreed to overwrite `conflicts`."""
    left = await shell.apply(waiting.copy_id, effects, access, conflicts=conflicts)
    named = {printable(path): reason for path, reason in left.items()}
    kept = some_of(f"{path} ({reason})" for path, reason in named.items())
    told = [*effects_told(effects, skip=left)]
    dropped = ((one.reason, printable(one.path)) for one in effects.dropped)
    told += [line(f"approval.impact.dropped_{reason}", path=path) for reason, path in dropped]
    told += [line("action.not_taken", paths=some_of(named))] if left else []
    return ToolResult(
        text=_lines(
            effects_line("applied", effects, skip=left),
            dropped_line(effects),
            f"Not taken over: {kept}" if left else "",
        ),
        told=tuple(told),
        changed=tuple(path for path in told_paths(effects) if path not in left),
        exact=all(bulk.undoable for bulk in effects.bulk),
        waiting=waiting if CHANGED in left.values() else None,
    )


def _hidden_line(hidden: Sequence[str]) -> str:
    """Return a line about files with secrets that a command opened and saw empty, or an empty text."""
    if not hidden:
        return ""
    return (
        f"(Hidden from commands, and opened by this one: {some_of(hidden)}. "
        "It saw them empty; if it needs one, name it in secrets, and the user is asked.)"
    )


def _lines(*lines: str) -> str:
    return "\n".join(filter(None, lines))


def _waiting(command: str, result: CommandResult | None, ended: CommandEnd) -> TakeOver | None:
    """Return the arguments to apply a command's file changes later, or None if it has none."""
    if result is None or not result.copy_id:
        return None
    return TakeOver(copy_id=result.copy_id, command=command, ended=ended)


def _run_line(result: CommandResult, shell: Shell, seconds: float) -> str:
    if result.stopped == "seconds":
        return f"stopped after {seconds:g} s"
    if result.stopped is not None:
        return f"stopped: {explain_limit(shell.settings, result.stopped)}"
    code = result.exit_code
    if code is None or code - 128 not in set(signal.Signals):
        return f"exit code {code}{f' ({result.pipeline})' if result.pipeline else ''}"
    perhaps = " (perhaps out of memory)" if code - 128 == signal.SIGKILL else ""
    if code - 128 == signal.SIGXFSZ:
        perhaps = f" (a file larger than {shell.settings.file_mb} MB)"
    return f"killed by signal {code - 128}{perhaps}"


def _stop_reason(result: CommandResult, shell: Shell, seconds: float) -> TextLine | None:
    if result.stopped is None:
        return None
    limits = {
        "seconds": seconds,
        "processes": shell.settings.max_processes,
        "memory_mb": shell.settings.memory_mb,
        "disk_mb": shell.settings.disk_mb,
    }
    return line(f"action.stopped_{result.stopped}", limit=f"{limits[result.stopped]:g}")


async def _hint(shell: Shell, result: CommandResult, *, network: bool) -> tuple[str, str]:
    """Return a hint about a failure in the sandbox, for the model and as a key for the user."""
    sandbox = await shell.sandbox()
    if result.refused_hosts:
        return _NOT_ALLOWED.format(hosts=some_of(result.refused_hosts)), "action.hosts_refused"
    if result.exit_code == 0 or sandbox.level in ("none", "external"):
        return "", ""
    if any(word in result.output for word in _REFUSALS):
        top = _NOT_AT_TOP if sandbox.level == "landlock" else ""
        return _KEPT_IN.format(more="" if sandbox.copies else _NO_COPY + top), "action.kept_in"
    if _OF_OTHERS in result.output:
        return _NOT_COPIED, "action.not_copied"
    if not network and not shell.settings.network and any(word in result.output for word in _UNREACHABLE):
        return _NO_NETWORK, "action.no_network"
    return "", ""


def _background_line(command: BackgroundCommand, said: BackgroundOutput) -> str:
    if said.running:
        return f"{command.id} runs" if said.text else f"{command.id} runs, and wrote nothing new"
    if said.stopped == "asked":
        return f"{command.id} was stopped"
    if said.error:
        return f"{command.id} could not be run: {said.error}"
    if said.stopped:
        return f"{command.id} was stopped at a limit: {said.stopped}"
    return f"{command.id} ended with exit code {said.exit_code}"
