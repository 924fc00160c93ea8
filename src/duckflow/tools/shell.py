"""Tool shell.run: one command in the sandbox. If it ran on a copy, its effects are applied afterwards."""

import signal
from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.command_result import CommandResult
from duckflow.safety.sandbox.copy.copy_writer import CHANGED
from duckflow.safety.sandbox.output import Emit
from duckflow.safety.sandbox.shell import Shell
from duckflow.tools.catalogue import CommandEnd, Proposal, TakeOver, Tool, ToolResult
from duckflow.tools.effects_text import dropped_line, effects_line, some, told_paths

RUN = "shell.run"
TAKE_OVER = "shell.take_over"

_REFUSALS = ("Read-only file system", "Permission denied", "Operation not permitted")
_UNREACHABLE = ("Could not resolve", "name resolution", "Network is unreachable", "getaddrinfo")
_KEPT_IN = "(Commands write only in the workspace, not in what else is mounted there, and in $TMPDIR{more}.)"
_OF_OTHERS = "Value too large for defined data type"
_NOT_COPIED = "(A file of another user or group can't be changed in place here; write a new file instead.)"
_NO_COPY = {
    "landlock": ", and not in .git or protected files, nor at the workspace's top: make files in a folder",
    "bubblewrap": ", and not in .git or protected files",
    "namespaces": ", and not in .git or protected files",
}
_NO_NETWORK = "(There is no network here; if the command needs it, ask with network true.)"


class Run(Frozen):
    """Arguments of shell.run."""

    command: str = Field(description="for bash, in the workspace")
    timeout_s: Annotated[int, Field(ge=1)] | None = Field(default=None, description="seconds it may take")
    network: bool = Field(default=False, description="asks the user")
    secrets: tuple[str, ...] = Field(
        default=(),
        description="such as .env; asks the user",
    )


def shell_tools(shell: Shell, emit: Emit) -> tuple[Tool[Any], ...]:
    """Return the tools of one shell. `emit` receives the output as it arrives."""

    async def run(args: Run, _access: Access) -> ToolResult:
        longest = shell.settings.max_timeout_s
        if args.timeout_s is not None and args.timeout_s > longest:
            raise ToolError(f"timeout_s may be {longest} at most.")
        seconds = args.timeout_s or shell.settings.timeout_s
        result = await shell.run(
            args.command, timeout_s=seconds, network=args.network, secrets=args.secrets, emit=emit
        )
        ended: CommandEnd = "succeeded" if result.exit_code == 0 or result.ran_through else "failed"
        hint = await _hint(shell, result, network=args.network)
        hidden = hidden_line(result.hidden)
        lines = [_first_line(result, shell, seconds), result.output.rstrip("\n"), hidden, hint]
        return ToolResult(
            text="\n".join(line for line in lines if line),
            whole=result.whole,
            changed=result.changed,
            exit_code=result.exit_code,
            exact=result.effects is not None,
            waiting=waiting_effects(args.command, result, "stopped" if result.stopped is not None else ended),
        )

    async def propose(args: Run, workspace: Workspace) -> Proposal:
        hidden = await shell.hidden(args.secrets) if args.secrets else ()
        if others := [path for path in args.secrets if path not in hidden]:
            raise ToolError(f"{', '.join(others)}: no file with secrets; leave it out of secrets.")
        network = "\n# with network" if args.network or shell.settings.network else ""
        seen = f"\n# sees {', '.join(args.secrets)}" if args.secrets else ""
        return Proposal(
            f"# in {workspace.root}{network}{seen}\n{args.command}\n",
            content=args.command,
            command=args.command,
            network=args.network,
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


async def apply_waiting(
    shell: Shell, waiting: TakeOver, effects: Effects, access: Access, *, conflicts: Iterable[str] = ()
) -> ToolResult:
    """Apply a command's effects, recorded first like any change. The user approved `conflicts`."""
    left = await shell.apply(waiting.copy_id, effects, access, conflicts=conflicts)
    lines = [effects_line("It changed", effects, skip=left), dropped_line(effects)]
    if left:
        lines.append("Not taken over: " + some(f"{path} ({reason})" for path, reason in left.items()))
    return ToolResult(
        text="\n".join(line for line in lines if line),
        changed=tuple(path for path in told_paths(effects) if path not in left),
        exact=all(bulk.undoable for bulk in effects.bulk),
        waiting=waiting if CHANGED in left.values() else None,
    )


def hidden_line(hidden: Sequence[str]) -> str:
    """Return a line about hidden files that a command opened and saw empty, if there are any."""
    if not hidden:
        return ""
    return (
        f"(Hidden from commands, and opened by this one: {some(hidden)}. "
        "It saw them empty; if it needs one, name it in secrets, and the user is asked.)"
    )


def waiting_effects(command: str, result: CommandResult, ended: CommandEnd) -> TakeOver | None:
    """Return the effects of a command that wait in its copy, if there are any."""
    if not result.copy_id:
        return None
    return TakeOver(copy_id=result.copy_id, command=command, ended=ended)


def _first_line(result: CommandResult, shell: Shell, seconds: float) -> str:
    if result.timed_out:
        return f"stopped after {seconds:g} s"
    if result.stopped is not None:
        limits = {
            "processes": f"it had more than {shell.settings.max_processes} processes",
            "memory_mb": f"it took more than {shell.settings.memory_mb} MB of memory",
            "disk_mb": f"it wrote more than {shell.settings.disk_mb} MB",
        }
        return f"stopped: {limits[result.stopped]}"
    code = result.exit_code
    if code is None or code - 128 not in set(signal.Signals):
        return f"exit code {code}{f' ({result.pipeline})' if result.pipeline else ''}"
    perhaps = " (perhaps out of memory)" if code - 128 == signal.SIGKILL else ""
    if code - 128 == signal.SIGXFSZ:
        perhaps = f" (a file larger than {shell.settings.file_mb} MB)"
    return f"killed by signal {code - 128}{perhaps}"


async def _hint(shell: Shell, result: CommandResult, *, network: bool) -> str:
    """Return a hint about failures in the sandbox that the program's own message does not explain."""
    sandbox = await shell.sandbox()
    if result.exit_code == 0 or sandbox.level in ("none", "external"):
        return ""
    if any(word in result.output for word in _REFUSALS):
        return _KEPT_IN.format(more="" if sandbox.copies else _NO_COPY[sandbox.level])
    if _OF_OTHERS in result.output:
        return _NOT_COPIED
    if not network and any(word in result.output for word in _UNREACHABLE):
        return _NO_NETWORK
    return ""
