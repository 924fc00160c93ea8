"""bubblewrap: the arguments that make a small world for one command."""

from collections.abc import Collection, Iterator
from pathlib import Path

from duckflow.safety.sandbox.child_setup import FILTER, GATE, INFO
from duckflow.safety.sandbox.visibility import Visibility

FEATURES = ("--disable-userns", "--size")
"""Options newer than the oldest bubblewrap that will do."""

_APART = ("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session")
_TOLD = ("--info-fd", str(INFO), "--block-fd", str(GATE), "--seccomp", str(FILTER))
_REPLACED = ("/dev", "/proc", "/run", "/var/run", "/tmp", "/var/tmp")  # noqa: S108 - not used, replaced
_MOST_DOORS = 200
_SMALL = "65536"
_STILL_THERE = ("/run/systemd/resolve", "/run/current-system", "/run/opengl-driver")
"""Of /run, which else holds sockets of services, and secrets of containers."""


def arguments(program: str, reach: Visibility, features: Collection[str], *, network: bool) -> list[str]:
    """bubblewrap and all it has to be told, up to the command itself."""
    return [
        program,
        *_APART,
        *(("--share-net",) if network else ()),
        *(("--unshare-user", "--disable-userns") if "--disable-userns" in features else ()),
        *_system(reach, features),
        *_hide((path for path in reach.hidden if not _inside(path, reach.workspace)), features),
        *_hide(_doors(reach), features),
        *("--bind", reach.workspace, reach.workspace),
        *_guard(reach),
        *_hide((path for path in reach.hidden if _inside(path, reach.workspace)), features),
        *("--chdir", reach.workspace),
        *_TOLD,
        "--",
    ]


def _system(reach: Visibility, features: Collection[str]) -> Iterator[str]:
    # Read-only, for root could set the kernel's own switches below /proc/sys without any capability.
    yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc")
    yield from ("--bind", f"{reach.temporary}/shm", "/dev/shm", "--remount-ro", "/dev")  # noqa: S108 - of its own
    small = "--size" in features
    yield from ("--size", _SMALL, "--tmpfs", "/run") if small else ("--tmpfs", "/run")
    for path in _STILL_THERE:
        yield from ("--ro-bind-try", path, path) if Path(path).exists() else ()
    yield from () if small else ("--remount-ro", "/run")
    for path in ("/tmp", "/var/tmp"):  # noqa: S108 - as above
        if Path(path).is_dir() and not Path(path).is_symlink():
            yield from ("--bind", f"{reach.temporary}/own", path)


def _guard(reach: Visibility) -> Iterator[str]:
    """What is protected, read-only; the folders that hold it stay in place, or they could be moved away."""
    above = {
        str(folder)
        for path in reach.guarded
        for folder in Path(path).parents
        if _inside(str(folder), reach.workspace)
    }
    for folder in sorted(above):
        yield from ("--bind-try", folder, folder)
    for path in reach.guarded:
        yield from ("--ro-bind-try", path, path)


def _hide(paths: Iterator[str], features: Collection[str]) -> Iterator[str]:
    """An empty place instead, in which nothing can be kept: it would be held in memory."""
    for path in paths:
        if Path(path).is_dir() and "--size" in features:
            yield from ("--size", _SMALL, "--tmpfs", path)
        elif Path(path).is_dir():
            yield from ("--tmpfs", path, "--remount-ro", path)
        else:
            yield from ("--ro-bind", "/dev/null", path)


def _doors(reach: Visibility) -> Iterator[str]:
    """Sockets in the file system that a service of this machine listens at: connecting is no writing."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "replace").splitlines()[1:]
    except OSError:
        return
    named = {words[7] for line in lines if len(words := line.split(maxsplit=7)) == 8 and words[7][0] == "/"}
    for path in sorted(named)[:_MOST_DOORS]:
        replaced = any(_inside(path, folder) for folder in (*_REPLACED, reach.workspace, *reach.hidden))
        if not replaced and Path(path).is_socket():
            yield path


def _inside(path: str, folder: str) -> bool:
    return path.startswith(folder.rstrip("/") + "/")
