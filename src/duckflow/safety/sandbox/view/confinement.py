"""A command as an order for the launcher: what runs, in which sandbox, with which limits."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from duckflow.config.settings import ShellSettings
from duckflow.domain.frozen import Frozen, replace
from duckflow.safety.sandbox.child import seccomp
from duckflow.safety.sandbox.view import bubblewrap
from duckflow.safety.sandbox.view.environment import command_environment
from duckflow.safety.sandbox.view.levels import Level, Sandbox
from duckflow.safety.sandbox.view.visibility import Stamp, Visibility, uncovered
from duckflow.safety.sandbox.view.world import World, WorldMount

_SHELLS = ("/bin/bash", "/usr/bin/bash", "/run/current-system/sw/bin/bash", "/bin/sh")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CLOSED = ("/dev", "/run", "/var/run", "/tmp", "/var/tmp", "/lost+found")  # noqa: S108 - closed, not used
_OPEN_ALL_THE_SAME = ("/run/systemd/resolve", "/run/current-system", "/run/opengl-driver")
_ROOM_FOR_THREADS = 4_000

OWN_FOLDERS = ("own", "home", "shm")
"""What commands can write to in the temporary folder of a session."""


class Limits(Frozen):
    """What a command may take."""

    seconds: float
    processes: int
    memory_mb: int
    file_mb: int
    disk_mb: int
    brake: int
    """Threads of the user at which the kernel itself refuses more, far above `processes`."""


class CopyMount(Frozen):
    """The folders of a copy: what it is of, where its changes go, and what the kernel needs for that."""

    lower: str
    upper: str
    work: str
    more: "tuple[CopyMount, ...]" = ()
    """Of the git directory, if that lies outside the workspace."""


class MadeRules(NamedTuple):
    """Rules of Landlock: a descriptor of them, and what they let a command write."""

    descriptor: int
    writable: tuple[str, ...]


class Order(Frozen):
    """What the launcher is told."""

    kind: Level
    argv: tuple[str, ...]
    env: dict[str, str]
    cwd: str
    limits: Limits
    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    rules: int | None = Field(default=None, exclude=True)
    """A descriptor that goes with it and says the same."""
    sockets: tuple[int, ...] = ()
    spared: tuple[int, ...] = ()
    network: bool = False
    """Whether it has the network of whoever starts it."""
    held: bool = False
    disk: tuple[str, ...] = ()
    """The folders that all it writes goes to, if those are known; the first is that of its copy."""
    temporary: str = ""
    copied: tuple[str, ...] = ()
    """The folders that it works on a copy of."""
    world: tuple[WorldMount, ...] = ()
    view: CopyMount | None = None


def limits_of(settings: ShellSettings, seconds: float) -> Limits:
    """The limits of one command."""
    return Limits(
        seconds=seconds,
        processes=settings.max_processes,
        memory_mb=settings.memory_mb,
        file_mb=settings.file_mb,
        disk_mb=settings.disk_mb,
        brake=_threads_now() + settings.max_processes + _ROOM_FOR_THREADS,
    )


def confine(
    command: str,
    sandbox: Sandbox,
    reach: World | Visibility,
    limits: Limits,
    user: Mapping[str, str],
    *,
    network: bool,
    view: CopyMount | None = None,
    held: bool = False,
    rules: MadeRules | None = None,
) -> Order:
    """The order to run a command in this sandbox: in a world of its own, or on the machine as it is.

    `held`: it runs where view and loopback are shared with other commands, so it makes neither. `rules`:
    Landlock's, if they are made already.
    """
    shell = (_shell(), "-c", command)
    if isinstance(reach, World):
        upper = (view.upper, *(one.upper for one in view.more)) if view else ()
        order = Order(
            kind=sandbox.level,
            argv=shell,
            env=command_environment(user, "/tmp", network=network),  # noqa: S108 - its own
            cwd=reach.parts.workspace,
            limits=limits,
            # With the machine's network come the abstract sockets of its services.
            sockets=seccomp.ON_THE_NETWORK if network else seccomp.IN_A_NAMESPACE,
            network=network or held,
            held=held,
            disk=(*upper, *(f"{reach.parts.temporary}/{one}" for one in OWN_FOLDERS)),
            copied=(view.lower, *(one.lower for one in view.more)) if view else (),
            temporary=reach.parts.temporary,
            world=reach.mounts,
            view=None if held else view,
        )
        if sandbox.level == "namespaces":
            return order
        ready = order.view is not None
        argv = bubblewrap.arguments(
            sandbox.program, reach, sandbox.features, network=network or held, ready=ready
        )
        return replace(order, argv=(*argv, *shell), world=order.world if ready else ())
    order = Order(
        kind=sandbox.level,
        argv=shell,
        env=command_environment(user, f"{reach.temporary}/own", network=network),
        cwd=reach.workspace,
        limits=limits,
    )
    if sandbox.level == "none":
        return order
    return replace(
        order,
        readable=tuple(readable(reach)) if rules is None else (),
        writable=tuple(writable(reach)) if rules is None else rules.writable,
        rules=None if rules is None else rules.descriptor,
        sockets=seccomp.ON_THE_NETWORK if network else (),
        spared=(os.getpid(),),
    )


def readable(reach: Visibility, listed: dict[str, Stamp] | None = None) -> Iterator[str]:
    """What Landlock lets commands read. `listed` gets the folders that were looked into for that."""
    yield from uncovered("/", (*reach.hidden, *_CLOSED), listed)
    yield from _OPEN_ALL_THE_SAME
    yield from _DEVICES
    yield from uncovered(reach.workspace, reach.hidden, listed)


def writable(reach: Visibility, listed: dict[str, Stamp] | None = None) -> Iterator[str]:
    """What Landlock lets commands write."""
    yield from _DEVICES
    yield f"{reach.temporary}/own"
    yield from uncovered(reach.workspace, (*reach.hidden, *reach.guarded), listed)


def _shell() -> str:
    return next((shell for shell in _SHELLS if Path(shell).exists()), "/bin/sh")


def _threads_now() -> int:
    """Every thread on this machine, which is more than all of the user's."""
    try:
        return int(Path("/proc/loadavg").read_text("ascii").split()[3].partition("/")[2])
    except (OSError, ValueError, IndexError):
        return 30_000
