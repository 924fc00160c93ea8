"""Launch orders: the command to run, its sandbox and its limits."""

import os
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pydantic import Field

from duckflow.config.settings import ShellSettings
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.sandbox.child import seccomp
from duckflow.safety.sandbox.view import bubblewrap
from duckflow.safety.sandbox.view.environment import GATEWAY, command_environment
from duckflow.safety.sandbox.view.levels import Level, Sandbox
from duckflow.safety.sandbox.view.mount_plan import Mount, MountPlan
from duckflow.safety.sandbox.view.visibility import LandlockRules, Visibility

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/run/current-system/sw/bin/bash", "/bin/sh")
_ROOM_FOR_THREADS = 4_000

OWN_FOLDERS = ("own", "home", "shm")
"""Folders in the temporary folder of a session to which commands can write."""


class Limits(Frozen):
    """Limits of a command."""

    seconds: float
    processes: int
    memory_mb: int
    file_mb: int
    disk_mb: int
    nproc_limit: int
    """Number of threads at which the kernel refuses new ones. It counts all threads of the user."""


class CopyMount(Frozen):
    """Folders of a copy: the original, the changes, and a work folder for the kernel."""

    lower: str
    upper: str
    work: str


class LaunchOrder(Frozen):
    """Order for the launcher."""

    kind: Level
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    limits: Limits
    writable: tuple[str, ...] = ()
    rules: int | None = Field(default=None, exclude=True)
    """Descriptor of Landlock's rules, which is closed once it is sent."""
    sockets: tuple[int, ...] = ()
    protected_pids: tuple[int, ...] = ()
    network: bool = False
    """True if the command uses the network of the process that starts it."""
    gateway: tuple[str, ...] = ()
    """Variables by which the command finds the gateway; empty if it reaches no hosts."""
    held: bool = False
    """True if the command shares existing mounts and an existing loopback network with other commands."""
    disk: tuple[str, ...] = ()
    """Folders that receive everything the command writes, if known. The first one is that of its copy."""
    temporary: str = ""
    mounts: tuple[Mount, ...] = ()
    copies: tuple[CopyMount, ...] = ()
    """Folders of which the command sees a copy."""


def limits_of(settings: ShellSettings, seconds: float) -> Limits:
    """Return the limits of one command."""
    return Limits(
        seconds=seconds,
        processes=settings.max_processes,
        memory_mb=settings.memory_mb,
        file_mb=settings.file_mb,
        disk_mb=settings.disk_mb,
        nproc_limit=_threads_now() + settings.max_processes + _ROOM_FOR_THREADS,
    )


def explain_limit(settings: ShellSettings, name: str) -> str:
    """Return a clause on the limit with this name, which ended a command or a server."""
    limits = {
        "seconds": "it ran too long",
        "processes": f"it had more than {settings.max_processes} processes",
        "memory_mb": f"it took more than {settings.memory_mb} MB of memory",
        "disk_mb": f"it wrote more than {settings.disk_mb} MB",
    }
    return limits[name]


def confine(
    command: str,
    sandbox: Sandbox,
    reach: MountPlan | Visibility,
    limits: Limits,
    user: Mapping[str, str],
    *,
    network: bool,
    copies: tuple[CopyMount, ...] = (),
    held: bool = False,
    gateway: bool = False,
    rules: LandlockRules | None = None,
) -> LaunchOrder:
    """Return the order to run a command in this sandbox. `rules` caches Landlock's rules between commands."""
    shell = (next((path for path in _SHELLS if Path(path).exists()), "/bin/sh"), "-c", command)
    if isinstance(reach, MountPlan):
        home = any(mount.target == reach.base.home for mount in reach.base.mounts)
        order = LaunchOrder(
            kind=sandbox.level,
            argv=shell,
            env=command_environment(
                user,
                "/tmp",  # noqa: S108 - in the sandbox
                network=network,
                own_home=home,
                gateway=gateway,
            ),
            cwd=reach.base.workspace,
            limits=limits,
            # The machine's network also gives access to the abstract sockets of its services.
            sockets=seccomp.ON_THE_NETWORK if network else seccomp.IN_A_NAMESPACE,
            network=network or held,
            held=held,
            gateway=GATEWAY if gateway else (),
            disk=(*(one.upper for one in copies), *(f"{reach.base.temporary}/{one}" for one in OWN_FOLDERS)),
            temporary=reach.base.temporary,
            mounts=reach.mounts,
            copies=copies,
        )
        if sandbox.level == "namespaces":
            return order
        argv = bubblewrap.arguments(
            sandbox.program, reach, sandbox.features, network=order.network or gateway
        )
        return replace(order, argv=(*argv, *shell), mounts=())
    order = LaunchOrder(
        kind="none" if sandbox.level == "external" else sandbox.level,
        argv=shell,
        env=command_environment(user, f"{reach.temporary}/own", network=network, own_home=False),
        cwd=reach.workspace,
        limits=limits,
    )
    if order.kind == "none":
        return order
    with closing(LandlockRules()) as own:
        made = (rules or own).find(reach)
    return replace(
        order,
        writable=made.writable,
        rules=made.descriptor,
        sockets=seccomp.ON_THE_NETWORK if network else (),
        protected_pids=(os.getpid(),),
    )


def _threads_now() -> int:
    """Return the number of threads on this machine, an upper bound for those of the user."""
    try:
        return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 30_000
