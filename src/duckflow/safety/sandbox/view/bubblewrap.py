"""Arguments for bubblewrap, which makes namespaces and mounts for one command."""

from collections.abc import Collection, Iterator

from duckflow.safety.sandbox.child.prepared_process import FILTER, GATE, INFO
from duckflow.safety.sandbox.view.mount_plan import BaseMounts, Mount, MountPlan

FEATURES = ("--disable-userns", "--size")
"""Options that the oldest supported version of bubblewrap lacks."""

TRIES = 3
_NOTHING_TO_MASK = "Can't create file at"

_APART = ("--unshare-all", "--cap-drop", "ALL", "--die-with-parent", "--new-session")
_TOLD = ("--info-fd", str(INFO), "--block-fd", str(GATE), "--seccomp", str(FILTER))
_SMALL = "65536"


def arguments(program: str, plan: MountPlan, features: Collection[str], *, network: bool) -> list[str]:
    """Return the bubblewrap command with all its arguments, up to the command itself."""
    base = plan.base
    return [
        program,
        *_APART,
        *(("--share-net",) if network else ()),
        *(("--unshare-user", "--disable-userns") if "--disable-userns" in features else ()),
        *("--dev", "/dev"),
        # Read-only, because root could set kernel settings below /proc/sys without any capability.
        *("--proc", "/proc", "--remount-ro", "/proc"),
        *("--bind", f"{base.temporary}/shm", "/dev/shm", "--remount-ro", "/dev"),  # noqa: S108 - in the sandbox
        *(word for mount in plan.mounts for word in _words(mount, base, features)),
        *("--remount-ro", "/"),
        *("--chdir", base.workspace),
        *_TOLD,
        "--",
    ]


def lost_a_mask(said: str) -> bool:
    """Return whether the command did not run because a socket to hide was removed. A retry may succeed."""
    return _NOTHING_TO_MASK in said


def _words(mount: Mount, base: BaseMounts, features: Collection[str]) -> Iterator[str]:
    match mount.kind:
        case "read":
            yield from ("--ro-bind-try", mount.source, mount.target)
        case "write":
            yield from ("--bind", mount.source, mount.target)
        case "link":
            yield from ("--symlink", mount.source, mount.target)
        case "empty_file":
            yield from ("--ro-bind", mount.source or f"{base.temporary}/empty", mount.target)
        case "empty_folder" if mount.source:
            yield from ("--ro-bind", mount.source, mount.target)
        case "empty_folder":
            # Read-only, because files written to it would take up memory.
            small = "--size" in features
            yield from ("--size", _SMALL, "--tmpfs", mount.target) if small else ("--tmpfs", mount.target)
            yield from ("--remount-ro", mount.target)
