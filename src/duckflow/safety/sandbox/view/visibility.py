"""Paths that a command without namespaces can read and write, and the Landlock rules for them.

A rule applies to a file or folder, not to its name, and one closed path in a large folder takes hundreds of
rules. So the rules are cached. They are made again when the closed paths change, or a folder whose entries
they list.
"""

import os
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from duckflow.domain.frozen import Frozen
from duckflow.safety.paths import FileStamp, is_inside, outermost, stamp_of
from duckflow.safety.sandbox.child import landlock

SECRETS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".oci", ".terraform.d", ".password-store"),
    *(".config/gcloud", ".config/gh", ".config/glab-cli", ".config/hub", ".config/op", ".config/sops"),
    *(".config/duckflow", ".local/state/duckflow", ".cache/duckflow", ".local/share/duckflow"),
    *(".local/share/keyrings", ".config/rclone", ".config/doctl", ".config/heroku", ".config/github-copilot"),
    *(".netrc", "_netrc", ".npmrc", ".yarnrc", ".yarnrc.yml", ".pypirc", ".git-credentials", ".pgpass"),
    *(".config/git/credentials", ".my.cnf", ".mylogin.cnf", ".vault-token", ".boto", ".s3cfg", ".dockercfg"),
    *(".cargo/credentials", ".cargo/credentials.toml", ".gem/credentials", ".m2/settings.xml"),
    *(".bash_history", ".zsh_history", ".python_history", ".node_repl_history", ".psql_history"),
    *(".local/share/fish/fish_history", ".lesshst", ".viminfo"),
    *(".claude", ".claude.json", ".codex", ".gemini"),
    *(".mozilla", ".thunderbird", ".config/google-chrome", ".config/chromium", ".config/BraveSoftware"),
    *("Library/Keychains", "Library/Application Support/duckflow"),
)
"""Paths in the user's home with keys, passwords, histories or data of agents, browsers or Duckflow."""

_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/var/backups"),
)

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_CLOSED = ("/dev", "/run", "/var/run", "/tmp", "/var/tmp", "/lost+found")  # noqa: S108 - closed, not used
_OPEN_ALL_THE_SAME = ("/run/systemd/resolve", "/run/current-system", "/run/opengl-driver")
_SECOND = 1_000_000_000
_TICK_NS = _SECOND // 20
_COARSE_NS = 3 * _SECOND
"""Two changes within a tick may get equal file times. Coarse times are those that count only seconds."""


class Visibility(Frozen):
    """Paths that decide what a command can read and write, all real and absolute."""

    workspace: str
    temporary: str
    """Folder whose subfolders `own` and `shm` commands use as /tmp and, where possible, /dev/shm."""
    hidden: tuple[str, ...]
    guarded: tuple[str, ...]
    """Read-only paths inside the workspace."""
    writes: tuple[str, ...] = ()
    """Other writable paths."""


def visibility_of(
    workspace: Path, temporary: Path, home: Path, closed: Iterable[Path], guarded: Iterable[str]
) -> Visibility:
    """Return the paths that commands in this workspace can reach; `closed` are Duckflow's own folders."""
    system = (path for path in _SYSTEM_SECRETS if os.access(path, os.R_OK))
    wanted = (*(f"{home}/{name}" for name in SECRETS), *system, *map(str, closed))
    root = os.path.realpath(workspace)
    real = {os.path.realpath(path) for path in wanted if os.path.exists(path)}
    return Visibility(
        workspace=root,
        temporary=os.path.realpath(temporary),
        hidden=outermost(path for path in real if not is_inside(root, path)),
        guarded=tuple(guarded),
    )


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder; empty if the folder is gone or not readable."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []


class MadeRules(NamedTuple):
    """Descriptor of Landlock rules, and the paths that they allow a command to write."""

    descriptor: int
    writable: tuple[str, ...]


class LandlockRules:
    """Landlock rules of one session. Blocking; only for one thread at a time."""

    def __init__(self) -> None:
        self._made: MadeRules | None = None
        self._reach: Visibility | None = None
        self._listed: dict[str, FileStamp | None] = {}
        self._single: dict[str, tuple[int, ...]] = {}

    def find(self, reach: Visibility) -> MadeRules:
        """Return the rules. Their descriptor can be used for one order."""
        if self._made is None or reach != self._reach or not self._hold():
            self.close()
            listed: dict[str, FileStamp | None] = {}
            wanted = tuple(_readable(reach, listed)), tuple(_writable(reach, listed))
            single = (path for paths in wanted for path in paths if os.path.dirname(path) not in listed)
            self._listed, self._single = listed, {path: _identity(path) for path in single}
            now = time.time_ns()
            fresh = any(stamp and _is_fresh(stamp.changed_ns, now) for stamp in listed.values())
            self._reach = None if fresh else reach
            self._made = MadeRules(landlock.make_rules(*wanted), wanted[1])
        return self._made._replace(descriptor=os.dup(self._made.descriptor))

    def _hold(self) -> bool:
        same = all(stamp_of(path) == stamp for path, stamp in self._listed.items())
        return same and all(_identity(path) == one for path, one in self._single.items())

    def close(self) -> None:
        """Close the descriptor of the rules."""
        if self._made is not None:
            os.close(self._made.descriptor)
        self._made = None


def uncovered(folder: str, closed: Iterable[str], listed: dict[str, FileStamp | None]) -> Iterator[str]:
    """Yield the largest parts of a folder without a closed path inside; `listed` gets the folders read."""
    concerned = [path for path in closed if is_inside(path, folder)]
    if folder in concerned:
        return
    if not concerned:
        yield folder
        return
    listed[folder] = stamp_of(folder)
    for entry in entries_of(folder):
        if entry.is_symlink():
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from uncovered(entry.path, concerned, listed)
        elif entry.path not in concerned:
            yield entry.path


def _readable(reach: Visibility, listed: dict[str, FileStamp | None]) -> Iterator[str]:
    yield from uncovered("/", (*reach.hidden, *_CLOSED), listed)
    yield from _OPEN_ALL_THE_SAME
    yield from _DEVICES
    yield from uncovered(reach.workspace, reach.hidden, listed)


def _writable(reach: Visibility, listed: dict[str, FileStamp | None]) -> Iterator[str]:
    yield from _DEVICES
    yield f"{reach.temporary}/own"
    yield from reach.writes
    yield from uncovered(reach.workspace, (*reach.hidden, *reach.guarded), listed)


def _identity(path: str) -> tuple[int, ...]:
    return (stamp_of(path) or ())[:2]


def _is_fresh(changed_ns: int, now: int) -> bool:
    return now - changed_ns < (_TICK_NS if changed_ns % _SECOND else _COARSE_NS)
