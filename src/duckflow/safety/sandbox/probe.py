"""Find the sandbox that works on this machine by running commands in each kind (SAFETY 9)."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

from duckflow.config.settings import SandboxChoice, ShellSettings
from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import replace
from duckflow.safety.descriptors import temporary_name
from duckflow.safety.sandbox.child import landlock, seccomp
from duckflow.safety.sandbox.copy.copies import CopyFolders
from duckflow.safety.sandbox.launcher_client import Ending, Launcher
from duckflow.safety.sandbox.view import bubblewrap
from duckflow.safety.sandbox.view.confinement import CopyMount, confine, limits_of
from duckflow.safety.sandbox.view.levels import Sandbox
from duckflow.safety.sandbox.view.mount_plan import MountPlan, base_mounts, mount_plan
from duckflow.safety.sandbox.view.visibility import Visibility
from duckflow.safety.syscalls import LINUX

_SECONDS = 10.0
_TRIAL = (
    "(echo out > '{outside}') 2>/dev/null; echo in > inside && cat inside && ! cat '{secret}' 2>/dev/null"
)

_WITH_COPIES = ("bubblewrap", "namespaces")
_NAMESPACES = Sandbox(level="namespaces", reason="sandbox.namespaces")

_NEITHER = {
    "sandbox.no_bubblewrap": "sandbox.no_bubblewrap_nor_landlock",
    "sandbox.bubblewrap_fails": "sandbox.bubblewrap_fails_no_landlock",
}
_ALONE = {
    "sandbox.no_bubblewrap": "sandbox.no_bubblewrap_alone",
    "sandbox.bubblewrap_fails": "sandbox.bubblewrap_fails_alone",
}
"""Message keys to use instead if no sandbox is left, or if the user allowed no other kind."""


class Probe:
    """Finds the sandbox once and remembers it until the process ends."""

    def __init__(self) -> None:
        self._machine: dict[SandboxChoice, Sandbox] = {}
        """Sandboxes that worked, for each setting. They do not depend on the folder."""
        self._known: dict[tuple[SandboxChoice, Path, bool], Sandbox] = {}

    async def find(
        self,
        choice: SandboxChoice,
        launcher: Launcher,
        workspace: Path,
        open_copies: Callable[[], Awaitable[CopyFolders]] | None,
    ) -> Sandbox:
        """Return the sandbox for this folder and setting. With `open_copies`, commands may work on copies."""
        known = (choice, workspace, open_copies is not None)
        if known not in self._known:
            found = self._machine.get(choice) or await _find(choice, launcher)
            if found.level in _WITH_COPIES:
                self._machine[choice] = found
            if open_copies is not None and found.level in _WITH_COPIES:
                works = await _can_copy(found, launcher, workspace, await open_copies())
                found = replace(found, copies=works)
            self._known[known] = found
        return self._known[known]


async def _find(choice: SandboxChoice, launcher: Launcher) -> Sandbox:
    if choice == "none":
        return Sandbox(level="none", reason="sandbox.switched_off", advice="sandbox.advice_switch_on")
    if choice == "external":
        return Sandbox(level="external", reason="sandbox.external")
    if not LINUX:
        return Sandbox(level="none", reason="sandbox.not_linux", advice="sandbox.advice_not_linux")
    if not seccomp.supported():
        return Sandbox(level="none", reason="sandbox.machine", values={"machine": os.uname().machine})
    if choice == "landlock":
        return await _landlock(launcher) or Sandbox(level="none", reason="sandbox.landlock_alone")
    if choice != "bubblewrap":
        # Plain namespaces come before bubblewrap, because they start no extra program for each command.
        own = await _namespaces(launcher)
        if own.level == "namespaces" or choice == "namespaces":
            return own
    found = await _bubblewrap(launcher)
    if found.level == "bubblewrap":
        return found
    if choice == "bubblewrap":
        return replace(found, reason=_ALONE[found.reason])
    if await _landlock(launcher) is None:
        return replace(found, reason=_NEITHER[found.reason])
    return replace(found, level="landlock")


async def _namespaces(launcher: Launcher) -> Sandbox:
    said = await _try(_NAMESPACES, launcher)
    return _failed("sandbox.namespaces_fail", said) if said else _NAMESPACES


async def _bubblewrap(launcher: Launcher) -> Sandbox:
    program = await asyncio.to_thread(_find_program)
    if program is None:
        return Sandbox(level="none", reason="sandbox.no_bubblewrap", advice="sandbox.advice_install")
    features = await asyncio.to_thread(_features, program)
    sandbox = Sandbox(level="bubblewrap", reason="sandbox.bubblewrap", program=program, features=features)
    said = await _try(sandbox, launcher)
    for _ in range(bubblewrap.TRIES):
        said = await _try(sandbox, launcher) if bubblewrap.lost_a_mask(said) else said
    if said and features:
        sandbox = replace(sandbox, features=frozenset[str]())
        said = await _try(sandbox, launcher)
    return _failed("sandbox.bubblewrap_fails", said) if said else sandbox


def _failed(reason: str, said: str) -> Sandbox:
    values = {"said": said.rstrip(".")}
    return Sandbox(level="none", reason=reason, advice="sandbox.advice_namespaces", values=values)


async def _landlock(launcher: Launcher) -> Sandbox | None:
    if landlock.version() < landlock.OLDEST:
        return None
    sandbox = Sandbox(level="landlock", reason="sandbox.landlock_chosen")
    return None if await _try(sandbox, launcher) else sandbox


async def _can_copy(sandbox: Sandbox, launcher: Launcher, workspace: Path, copies: CopyFolders) -> bool:
    """Return whether a command that runs on a copy of this folder writes only to the copy."""
    temporary = await launcher.temporary()
    base = await asyncio.to_thread(base_mounts, str(workspace), str(temporary), os.environ, ())
    name = temporary_name()
    try:
        copy = await asyncio.to_thread(copies.make, str(workspace))
    except OSError:
        return False
    try:
        ending, _ = await _run(f"echo > {name}", sandbox, mount_plan(base), launcher, copy.mounts)
        wrote = not ending.error and ending.code == 0 and copy.content(name, 10) is not None
        return wrote and not await asyncio.to_thread((workspace / name).exists)
    except ToolError:
        return False
    finally:
        await asyncio.to_thread(copy.discard)


async def _run(
    command: str,
    sandbox: Sandbox,
    reach: MountPlan | Visibility,
    launcher: Launcher,
    copies: tuple[CopyMount, ...] = (),
) -> tuple[Ending, str]:
    said = bytearray()
    limits = limits_of(ShellSettings(), _SECONDS)
    order = confine(command, sandbox, reach, limits, os.environ, network=False, copies=copies)
    ending = await launcher.run(order, said.extend)
    return ending, said.decode(errors="replace").strip()


def _find_program() -> str | None:
    """Find bubblewrap, but only in system folders, to which no project can write."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin")


def _features(program: str) -> frozenset[str]:
    with suppress(subprocess.TimeoutExpired):
        said = subprocess.run([program, "--help"], env={}, capture_output=True, timeout=_SECONDS, check=False)  # noqa: S603 - a system program
        return frozenset(one for one in bubblewrap.FEATURES if one.encode() in said.stdout + said.stderr)
    return frozenset()


async def _try(sandbox: Sandbox, launcher: Launcher) -> str:
    """Run a command that writes inside and tries to reach out. Return the problem, or an empty text."""
    try:
        temporary = await launcher.temporary()
        folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="trial-", dir=temporary))
        return await _try_in(folder, temporary, sandbox, launcher)  # the launcher removes the folder
    except (ToolError, OSError) as exc:
        return str(exc)


async def _try_in(folder: Path, temporary: Path, sandbox: Sandbox, launcher: Launcher) -> str:
    workspace, closed = folder / "workspace", folder / "closed"
    workspace.mkdir()
    closed.mkdir()
    (closed / "secret").write_text("secret", "ascii")
    if sandbox.level in _WITH_COPIES:
        env = {**os.environ, "HOME": str(folder)}
        reach = mount_plan(base_mounts(str(workspace), str(temporary), env, (str(closed),)))
    else:
        hidden = (str(closed),)
        reach = Visibility(workspace=str(workspace), temporary=str(temporary), hidden=hidden, guarded=())
    trial = _TRIAL.format(outside=folder / "outside", secret=closed / "secret")
    ending, said = await _run(trial, sandbox, reach, launcher)
    if (folder / "outside").exists():
        return "it let a command write outside"
    if not (workspace / "inside").exists() or ending.error or ending.code != 0:
        return " ".join([ending.error or f"exit code {ending.code}", *said.splitlines()[:1]])
    return ""


PROBE = Probe()
"""One for the whole process, because the machine does not change while it runs."""
