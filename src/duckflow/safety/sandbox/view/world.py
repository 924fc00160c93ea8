"""The world a command sees, as a list of mounts: an allow-list, not names to hide (SPEC G7).

The system's folders and the user's tool chains, to be read; the workspace; a /tmp and a home of the
session's own. Whatever else there is on the machine is not there.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from duckflow.domain.frozen import Frozen
from duckflow.safety.paths import is_inside
from duckflow.safety.sandbox.view.toolchains import ToolchainSearch, credentials_in

MountKind = Literal["read", "write", "link", "empty_folder", "empty_file"]

MASK_KINDS: tuple[MountKind, ...] = ("empty_folder", "empty_file")

SYSTEM_FOLDERS = (
    *("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/usr", "/etc", "/opt", "/nix", "/gnu"),
    *("/snap", "/sys", "/var/lib/dpkg", "/var/lib/apt/lists", "/var/lib/rpm", "/var/lib/pacman"),
    *("/var/cache/fontconfig", "/var/cache/man", "/var/lib/ca-certificates", "/var/lib/alternatives"),
    *("/var/db/pkg", "/run/systemd/resolve", "/run/current-system", "/run/opengl-driver"),
)
"""What belongs to the system, to be read."""

_PRIVATE = ("/etc", "/opt")
"""Folders of the system in which root, too, should not read what others may not."""

_OF_THE_KERNEL = ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/pstore", "/sys/firmware/efi/efivars")
"""What all programs do, and what is left of crashes."""

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - of the session's own
_OF_OTHERS = 0o004


class WorldMount(Frozen):
    """One step of building it. `source` is where it comes from, or a link's target.

    Without one, an empty file or folder is one that all those share.
    """

    kind: MountKind
    target: str
    source: str = ""


class WorldParts(Frozen):
    """What is the same for all commands of a session."""

    workspace: str
    temporary: str
    """Holds the session's own folders: `own` is its /tmp, `home` its home, `shm` its /dev/shm."""
    home: str
    toolchains: tuple[str, ...]
    mounts: tuple[WorldMount, ...]
    """All but what may differ from command to command."""
    ahead: int = 0
    """So many of them have nothing to do with the workspace, and can be made before a command is known."""

    @property
    def seen_outside(self) -> tuple[str, ...]:
        """Where a link in the workspace may lead: what can be read and never written."""
        return (*SYSTEM_FOLDERS, *self.toolchains)


class World(Frozen):
    """What one command sees: the mounts, in order."""

    parts: WorldParts
    mounts: tuple[WorldMount, ...]


def world_parts(
    workspace: str, temporary: str, environment: Mapping[str, str], closed: Iterable[str]
) -> WorldParts:
    """Look at the machine, once for a session. `closed` are Duckflow's own folders."""
    home = os.path.realpath(environment.get("HOME") or Path.home())
    system = tuple(path for path in SYSTEM_FOLDERS if os.path.exists(path))
    toolchains = ToolchainSearch(home, workspace, system).find(environment)
    ours = (os.path.realpath(path) for path in closed if os.path.exists(path))
    seen = (*system, *toolchains, workspace)
    masked = [path for path in ours if any(is_inside(path, folder) for folder in seen)]
    masked += [*credentials_in(toolchains), *(_only_for_root() if os.geteuid() == 0 else ())]
    hidden = [path for path in dict.fromkeys(masked) if not is_inside(workspace, path)]
    within = [path for path in hidden if is_inside(path, workspace)]
    before = (
        *_shown(temporary, home, toolchains),
        *(_mask(path) for path in hidden if path not in within),
    )
    own = WorldMount(kind="write", target=workspace, source=workspace)
    return WorldParts(
        workspace=workspace,
        temporary=temporary,
        home=home,
        toolchains=toolchains,
        mounts=(*before, own, *map(_mask, within)),
        ahead=len(before),
    )


def world_of(
    parts: WorldParts,
    *,
    masked: Iterable[str] = (),
    masks: Mapping[str, str] = MappingProxyType({}),
    guarded: Iterable[str] = (),
    git_directory: str | None = None,
) -> World:
    """For one command. `masked`: what it sees empty in the workspace; `masks`: what it sees instead.

    `guarded`: what may only be read there.

    `git_directory`: the one behind its `.git` file, of which there is a copy, too.
    """
    guards = tuple(guarded)
    writable = (*((git_directory,) if git_directory else ()), *_holders(guards, parts.workspace))
    held = [WorldMount(kind="write", target=path, source=path) for path in writable]
    held += [WorldMount(kind="read", target=path, source=path) for path in guards]
    covered = (*map(_mask, (*_doors(parts), *masked)), *(_mask(*one) for one in masks.items()))
    return World(parts=parts, mounts=(*parts.mounts, *held, *covered))


def _shown(temporary: str, home: str, toolchains: Iterable[str]) -> Iterator[WorldMount]:
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            yield WorldMount(kind="link", target=path, source=os.readlink(path))
        elif os.path.exists(path):
            yield WorldMount(kind="read", target=path, source=path)
    for path in _TEMPORARY:
        yield WorldMount(kind="write", target=path, source=f"{temporary}/own")
    if home.count("/") > 1 or home == "/root":
        yield WorldMount(kind="write", target=home, source=f"{temporary}/home")
    for path in toolchains:
        yield WorldMount(kind="read", target=path, source=path)


def _mask(path: str, instead: str = "") -> WorldMount:
    kind = "empty_folder" if os.path.isdir(path) else "empty_file"
    return WorldMount(kind=kind, target=path, source=instead)


def _holders(guarded: Iterable[str], workspace: str) -> list[str]:
    """The folders that hold what is guarded stay in place, or they could be moved away."""
    above = {str(folder) for path in guarded for folder in Path(path).parents}
    return sorted(folder for folder in above if folder != workspace and is_inside(folder, workspace))


def _only_for_root() -> Iterator[str]:
    """What others may not read in the system's folders: keys of the host, passwords, connections."""
    for path in _OF_THE_KERNEL:
        with suppress(OSError):
            if os.listdir(path):
                yield path
    waiting: list[str] = [*_PRIVATE]
    while waiting:
        with suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_symlink():
                    continue
                if not entry.stat(follow_symlinks=False).st_mode & _OF_OTHERS:
                    yield entry.path
                elif entry.is_dir(follow_symlinks=False) and entry.path.startswith("/etc/"):
                    waiting.append(entry.path)


def _doors(parts: WorldParts) -> Iterator[str]:
    """Sockets in what can be seen that a service of this machine listens at: connecting is no writing."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    named = {words[7] for line in lines if len(words := line.split(maxsplit=7)) == 8 and words[7][0] == "/"}
    for path in sorted(named):
        seen = any(
            is_inside(path, folder) for folder in (*SYSTEM_FOLDERS, *parts.toolchains, parts.workspace)
        )
        if seen and Path(path).is_socket():
            yield path
