"""The shell of one workspace: runs commands in the sandbox, one order each."""

import asyncio
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from duckflow.config.settings import ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen
from duckflow.safety.sandbox.confinement import Order, confine, limits_of
from duckflow.safety.sandbox.launcher_client import Ending, Launcher
from duckflow.safety.sandbox.levels import Sandbox
from duckflow.safety.sandbox.output import CommandOutput, Emit, Glimpses
from duckflow.safety.sandbox.probe import PROBE, Probe
from duckflow.safety.sandbox.visibility import Visibility, visibility_of
from duckflow.safety.sandbox.workspace_scan import WorkspaceScan, changed_between, look

LONGEST_COMMAND = 100_000
"""Bytes; the kernel takes 131,071 in one argument."""

_TRIES = 3
"""How often a sandbox is set up that could not be: what is to be hidden may be gone by then. Nothing ran."""

_OF_BUBBLEWRAP = "bwrap: "


class CommandResult(Frozen):
    """How a command ended and what it wrote. `exit_code` is None where it was stopped."""

    exit_code: int | None
    output: str
    timed_out: bool = False
    stopped: str | None = None
    """The limit it reached, if one stopped it: seconds, processes, memory_mb."""
    changed: tuple[str, ...] = ()
    """Files of the workspace that differ now, as far as a bounded look can tell."""


class Shell:
    """Runs commands in one workspace. Nothing is started or probed before the first is wanted."""

    def __init__(
        self,
        workspace: Path,
        settings: ShellSettings,
        *,
        closed: Iterable[Path] = (),
        env: Mapping[str, str] | None = None,
        probe: Probe = PROBE,
    ) -> None:
        self._workspace = Path(os.path.realpath(workspace))
        self._settings = settings
        self._closed = tuple(closed)
        self._env = os.environ if env is None else env
        self._probe = probe
        self._launcher = Launcher()

    @property
    def workspace(self) -> Path:
        """The folder commands run in."""
        return self._workspace

    @property
    def settings(self) -> ShellSettings:
        """What commands may take."""
        return self._settings

    async def sandbox(self) -> Sandbox:
        """What keeps commands in here; found out by trying, once for the process."""
        return await self._probe.find(self._settings.sandbox, self._launcher)

    async def run(
        self,
        command: str,
        *,
        timeout_s: float | None = None,
        network: bool = False,
        emit: Emit | None = None,
    ) -> CommandResult:
        """Run a command to its end; ToolError where it could not be run at all.

        Cancelling kills everything it started before it comes back.
        """
        _check(command)
        seconds = self._settings.timeout_s if timeout_s is None else timeout_s
        sandbox = await self.sandbox()
        reach, before = await asyncio.to_thread(self._look, await self._launcher.temporary())
        limits = limits_of(self._settings, seconds)
        network = network or self._settings.network
        tries = _TRIES
        while True:
            tries -= 1
            order = confine(command, sandbox, reach, limits, self._env, network=network)
            ending, written = await self._run(order, emit)
            if not ending.error or not tries:
                break
        _check_started(ending, written, sandbox)
        after = await asyncio.to_thread(look, reach.workspace)
        return CommandResult(
            exit_code=ending.code if ending.stopped is None else None,
            output=written,
            timed_out=ending.stopped == "seconds",
            stopped=ending.stopped,
            changed=changed_between(before, after),
        )

    async def _run(self, order: Order, emit: Emit | None) -> tuple[Ending, str]:
        output, glimpses = CommandOutput(self._settings.max_output_bytes), Glimpses(emit)

        def take(block: bytes) -> None:
            output.take(block)
            glimpses.take(block)

        ending = await self._launcher.run(order, take)
        glimpses.finish()
        return ending, output.text()

    async def aclose(self) -> None:
        """End the launcher and remove the temporary folder."""
        await self._launcher.aclose()

    def _look(self, temporary: Path) -> tuple[Visibility, WorkspaceScan]:
        home = Path(self._env.get("HOME") or Path.home())
        seen = look(str(self._workspace))
        return visibility_of(self._workspace, temporary, home, self._closed, seen.guarded), seen


def _check(command: str) -> None:
    if not command.strip():
        raise ToolError("The command is empty.")
    if "\0" in command:
        raise ToolError("A command may not contain NUL.")
    size = len(command.encode("utf-8", "surrogatepass"))
    if size > LONGEST_COMMAND:
        raise ToolError(
            f"The command has {size} bytes, {LONGEST_COMMAND} at most; write a script file and run that."
        )


def _check_started(ending: Ending, written: str, sandbox: Sandbox) -> None:
    """ToolError where the sandbox did not stand: then nothing ran, and nothing runs without it."""
    if ending.error:
        said = f"{ending.error}: {written.strip()[:300]}" if written.strip() else ending.error
        raise ToolError(f"The command could not be run in its sandbox ({sandbox.level}): {said}.")
    if sandbox.level == "bubblewrap" and ending.code == 1 and written.startswith(_OF_BUBBLEWRAP):
        raise ToolError(f"The command could not be run in its sandbox: {written.strip()[:300]}.")
