"""Result of a command, and errors for commands that can't run."""

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.safety.sandbox.launcher_client import Ending
from duckflow.safety.sandbox.view.levels import Sandbox

LONGEST_COMMAND = 100_000
"""Longest command, in bytes. The kernel accepts at most 131,071 in one argument."""

_OF_BUBBLEWRAP = "bwrap: "


class CommandResult(Frozen):
    """Result of a command. `exit_code` is None if the command was stopped."""

    exit_code: int | None
    output: str
    pipeline: str = ""
    """Exit codes of the parts of the last pipeline, if not all succeeded: `pytest 1 | tail 0`."""
    ran_through: bool = False
    """True if the shell reported success, even if a part of the pipeline failed."""
    whole: str = ""
    """Full output, as far as it was kept, if `output` has only its beginning and end."""
    stopped: str | None = None
    """Limit that stopped the command, if any: seconds, processes, memory_mb, disk_mb."""
    hidden: tuple[str, ...] = ()
    """Secret files that the command opened. Commands see them empty."""
    refused_hosts: tuple[str, ...] = ()
    """Hosts that the command tried to reach without being allowed to."""
    changed: tuple[str, ...] = ()
    """If there was no copy: changed files of the workspace, as far as a limited search finds them."""
    effects: Effects | None = None
    """If there was a copy: all effects of the command. None of them has been applied to the workspace yet."""
    copy_id: str = ""
    """Id of the copy with the effects, if there are any. The copy must be applied or discarded."""


def result_of(ending: Ending, written: str, sandbox: Sandbox) -> CommandResult:
    """Return the result. Raise ToolError if the sandbox failed, in which case the command did not run."""
    if ending.error:
        said = f"{ending.error}: {written.strip()[:300]}" if written.strip() else ending.error
        raise ToolError(
            f"The command could not be run in its sandbox ({sandbox.level}): {said}.", "reason.sandbox"
        )
    if sandbox.level == "bubblewrap" and ending.code == 1 and written.startswith(_OF_BUBBLEWRAP):
        raise ToolError(
            f"The command could not be run in its sandbox: {written.strip()[:300]}.", "reason.sandbox"
        )
    return CommandResult(
        exit_code=ending.code if ending.stopped is None else None,
        output=written,
        stopped=ending.stopped,
    )


def check_command(command: str) -> None:
    """Raise ToolError for a command that no shell can run."""
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("A command may not contain NUL.")
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size} bytes, {LONGEST_COMMAND} at most; write a script file and run that."
        )
