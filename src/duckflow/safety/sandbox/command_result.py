"""How a command ended and what it wrote; and what is refused before or instead of that."""

from duckflow.domain.errors import ToolError
from duckflow.domain.files.effects import Effects
from duckflow.domain.frozen import Frozen
from duckflow.safety.sandbox.launcher_client import Ending
from duckflow.safety.sandbox.view.levels import Sandbox

LONGEST_COMMAND = 100_000
"""Bytes; the kernel takes 131,071 in one argument."""

_OF_BUBBLEWRAP = "bwrap: "


class CommandResult(Frozen):
    """What became of a command. `exit_code` is None where it was stopped."""

    exit_code: int | None
    output: str
    pipeline: str = ""
    """How the parts of its last pipeline ended, if not all ended well: `pytest 1 | tail 0`."""
    ran_through: bool = False
    """Whether the shell itself ended with success, whatever a part of the pipeline did."""
    whole: str = ""
    """All of the output, if `output` is only its beginning and its end."""
    timed_out: bool = False
    stopped: str | None = None
    """The limit it reached, if one stopped it: seconds, processes, memory_mb, disk_mb."""
    hidden: tuple[str, ...] = ()
    """Files it opened that commands see empty, because they hold secrets."""
    changed: tuple[str, ...] = ()
    """Without a copy: files of the workspace that differ now, as far as a bounded look can tell."""
    effects: Effects | None = None
    """With a copy: all that it did. Nothing of it has happened to the workspace yet."""
    copy_id: str = ""
    """The copy that holds the effects, if there are any: take it over or discard it."""


def result_of(ending: Ending, written: str, sandbox: Sandbox) -> CommandResult:
    """The result; ToolError where the sandbox did not stand: nothing ran, and nothing runs without it."""
    if ending.error:
        said = f"{ending.error}: {written.strip()[:300]}" if written.strip() else ending.error
        raise ToolError(f"The command could not be run in its sandbox ({sandbox.level}): {said}.")
    if sandbox.level == "bubblewrap" and ending.code == 1 and written.startswith(_OF_BUBBLEWRAP):
        raise ToolError(f"The command could not be run in its sandbox: {written.strip()[:300]}.")
    return CommandResult(
        exit_code=ending.code if ending.stopped is None else None,
        output=written,
        timed_out=ending.stopped == "seconds",
        stopped=ending.stopped,
    )


def check_command(command: str) -> None:
    """ToolError for what no shell could run."""
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("A command may not contain NUL.")
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size} bytes, {LONGEST_COMMAND} at most; write a script file and run that."
        )
