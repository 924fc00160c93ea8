"""shell.run: one command in the sandbox."""

import signal
from typing import Annotated

from pydantic import Field

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.files.access import Access
from duckflow.safety.files.workspace import Workspace
from duckflow.safety.sandbox.output import Emit
from duckflow.safety.sandbox.shell import CommandResult, Shell
from duckflow.tools.catalogue import Proposal, Tool, ToolResult

_STOPPED = {
    "processes": "stopped: it had more than {limit} processes",
    "memory_mb": "stopped: it took more than {limit} MB of memory",
}
_REFUSALS = ("Read-only file system", "Permission denied", "Operation not permitted")
_UNREACHABLE = ("Could not resolve", "name resolution", "Network is unreachable", "getaddrinfo")
_KEPT_IN = "(Commands write only in the workspace and in $TMPDIR, and not in .git or protected files{top}.)"
_NO_NETWORK = "(There is no network here; if the command needs it, ask with network true.)"


class Run(Frozen):
    """What run takes."""

    command: str = Field(description="for bash, in the workspace")
    timeout_s: Annotated[int, Field(ge=1)] | None = Field(default=None, description="seconds it may take")
    network: bool = Field(default=False, description="whether it needs the network; the user is asked")


def shell_tools(shell: Shell, emit: Emit) -> tuple[Tool, ...]:
    """The operations of one shell; `emit` gets the output as it comes."""

    async def run(args: Run, _access: Access) -> ToolResult:
        longest = shell.settings.max_timeout_s
        if args.timeout_s is not None and args.timeout_s > longest:
            raise ToolError(f"timeout_s may be {longest} at most.")
        seconds = args.timeout_s or shell.settings.timeout_s
        result = await shell.run(args.command, timeout_s=seconds, network=args.network, emit=emit)
        hint = await _hint(shell, result, network=args.network)
        lines = [_first_line(result, shell, seconds), result.output.rstrip("\n"), hint]
        return ToolResult(
            text="\n".join(line for line in lines if line),
            changed=result.changed,
            exit_code=result.exit_code,
        )

    async def propose(args: Run, workspace: Workspace) -> Proposal:
        network = "\n# with network" if args.network or shell.settings.network else ""
        return Proposal(f"# in {workspace.root}{network}\n{args.command}\n", args.command)

    return (
        Tool(
            operation="shell.run",
            args=Run,
            summary="run a bash command in the workspace, in a sandbox; network: it needs the network",
            effect="execute",
            run=run,
            propose=propose,
        ),
    )


def _first_line(result: CommandResult, shell: Shell, seconds: float) -> str:
    if result.timed_out:
        return f"stopped after {seconds:g} s"
    if result.stopped is not None:
        limits = {"processes": shell.settings.max_processes, "memory_mb": shell.settings.memory_mb}
        return _STOPPED[result.stopped].format(limit=limits[result.stopped])
    code = result.exit_code
    if code is None or not _is_signal(code):
        return f"exit code {code}"
    perhaps = " (perhaps out of memory)" if code - 128 == signal.SIGKILL else ""
    if code - 128 == signal.SIGXFSZ:
        perhaps = f" (a file larger than {shell.settings.file_mb} MB)"
    return f"killed by signal {code - 128}{perhaps}"


def _is_signal(code: int) -> bool:
    return code - 128 in set(signal.Signals)


async def _hint(shell: Shell, result: CommandResult, *, network: bool) -> str:
    """What a model can't guess from the words of a program that met the sandbox."""
    level = (await shell.sandbox()).level
    if result.exit_code == 0 or level == "none":
        return ""
    if any(word in result.output for word in _REFUSALS):
        top = ", nor make files at its top: make them in a folder" if level == "landlock" else ""
        return _KEPT_IN.format(top=top)
    if not network and any(word in result.output for word in _UNREACHABLE):
        return _NO_NETWORK
    return ""
