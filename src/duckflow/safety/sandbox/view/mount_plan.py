"""Mounts of a command: they list what it can see, instead of names to hide (G7).

A command sees the system's folders and the user's tool chains, read-only; the workspace; and a /tmp and home
folder of the session. Nothing else on the machine is visible.
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
"""System folders that commands can read."""

_PRIVATE = ("/etc", "/opt")
"""System folders in which commands run by root can't see files that are closed to other users."""

_OF_THE_KERNEL = ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/pstore", "/sys/firmware/efi/efivars")
"""Kernel folders that trace all programs or hold remains of crashes."""

_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - separate for each session
_OF_OTHERS = 0o004


class Mount(Frozen):
    """One mount. `source` is what appears at `target`, or the target of a link; empty files may lack it."""

    kind: MountKind
    target: str
    source: str = ""


class BaseMounts(Frozen):
    """Mounts that are the same for all commands of a session."""

    workspace: str
    temporary: str
    """Folder of the session: its subfolder `own` appears as /tmp, `home` as the home, `shm` as /dev/shm."""
    home: str
    home_source: str
    toolchains: tuple[str, ...]
    mounts: tuple[Mount, ...]
    """All mounts except those that can differ between commands."""
    ahead: int = 0
    """Number of leading mounts that do not depend on the workspace, so they can be prepared in advance."""

    @property
    def seen_outside(self) -> tuple[str, ...]:
        """Folders outside the workspace that links may lead to, because they are always read-only."""
        return (*SYSTEM_FOLDERS, *self.toolchains)


class MountPlan(Frozen):
    """All mounts of one command, in order."""

    base: BaseMounts
    mounts: tuple[Mount, ...]


def base_mounts(
    workspace: str,
    temporary: str,
    environment: Mapping[str, str],
    closed: Iterable[str],
    *,
    reads: Iterable[str] = (),
    writes: Iterable[str] = (),
    home_source: str = "",
) -> BaseMounts:
    """Find the mounts for this machine, once per session. `closed` are Duckflow's own folders.

    `reads` and `writes` are more paths outside the workspace. `home_source` appears as the home folder.
    """
    home_source = home_source or f"{temporary}/home"
    given = [Mount(kind="read", target=path, source=path) for path in reads]
    given += [Mount(kind="write", target=path, source=path) for path in writes]
    more = [one for one in given if not is_inside(one.target, workspace)]
    home = os.path.realpath(environment.get("HOME") or Path.home())
    system = tuple(path for path in SYSTEM_FOLDERS if os.path.exists(path))
    toolchains = ToolchainSearch(home, workspace, system).find(environment)
    ours = (os.path.realpath(path) for path in closed if os.path.exists(path))
    seen = (*system, *toolchains, *(one.target for one in more), workspace)
    masked = [path for path in ours if any(is_inside(path, folder) for folder in seen)]
    masked += [*credentials_in(toolchains), *(_only_for_root() if os.geteuid() == 0 else ())]
    hidden = [path for path in dict.fromkeys(masked) if not is_inside(workspace, path)]
    within = [path for path in hidden if is_inside(path, workspace)]
    shown = _shown(temporary, home, home_source, toolchains)
    before = (*shown, *more, *(_mask(path) for path in hidden if path not in within))
    own = Mount(kind="write", target=workspace, source=workspace)
    return BaseMounts(
        workspace=workspace,
        temporary=temporary,
        home=home,
        home_source=home_source,
        toolchains=toolchains,
        mounts=(*before, own, *map(_mask, within)),
        ahead=len(before),
    )


def mount_plan(
    base: BaseMounts,
    *,
    masks: Mapping[str, str] = MappingProxyType({}),
    guarded: Iterable[str] = (),
    git_directory: str | None = None,
) -> MountPlan:
    """Return the mounts for one command.

    `masks` maps each hidden path to what the command sees instead (empty: a shared empty file). `guarded`
    paths are read-only. `git_directory` is the outside git directory, of which there is a copy, too.
    """
    guards = tuple(guarded)
    writable = (*((git_directory,) if git_directory else ()), *_holders(guards, base.workspace))
    held = [Mount(kind="write", target=path, source=path) for path in writable]
    held += [Mount(kind="read", target=path, source=path) for path in guards]
    covered = (*map(_mask, _doors(base)), *(_mask(*one) for one in masks.items()))
    return MountPlan(base=base, mounts=(*base.mounts, *held, *covered))


def _shown(temporary: str, home: str, home_source: str, toolchains: Iterable[str]) -> Iterator[Mount]:
    for path in SYSTEM_FOLDERS:
        if os.path.islink(path):
            yield Mount(kind="link", target=path, source=os.readlink(path))
        elif os.path.exists(path):
            yield Mount(kind="read", target=path, source=path)
    for path in _TEMPORARY:
        yield Mount(kind="write", target=path, source=f"{temporary}/own")
    if home.count("/") > 1 or home == "/root":
        yield Mount(kind="write", target=home, source=home_source)
    for path in toolchains:
        yield Mount(kind="read", target=path, source=path)


def _mask(path: str, instead: str = "") -> Mount:
    kind = "empty_folder" if os.path.isdir(path) else "empty_file"
    return Mount(kind=kind, target=path, source=instead)


def _holders(guarded: Iterable[str], workspace: str) -> list[str]:
    """Return the folders above guarded paths. They are mounted, because a mounted folder can't be moved."""
    above = {str(folder) for path in guarded for folder in Path(path).parents}
    return sorted(folder for folder in above if folder != workspace and is_inside(folder, workspace))


def _only_for_root() -> Iterator[str]:
    """Yield paths in system folders that other users may not read: host keys, passwords, connections."""
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


def _doors(base: BaseMounts) -> Iterator[str]:
    """Yield visible sockets on which services of this machine listen: a command could connect to them."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    named = {words[7] for line in lines if len(words := line.split(maxsplit=7)) == 8 and words[7][0] == "/"}
    for path in sorted(named):
        seen = any(is_inside(path, folder) for folder in (*SYSTEM_FOLDERS, *base.toolchains, base.workspace))
        if seen and Path(path).is_socket():
            yield path
