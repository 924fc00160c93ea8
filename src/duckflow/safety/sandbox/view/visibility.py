"""Paths that a command can write, paths that it can only read, and hidden paths."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from duckflow.domain.frozen import Frozen
from duckflow.safety.paths import is_inside, outermost

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
"""Paths below the user's home with keys, passwords, histories, other agents, browsers, Duckflow itself."""

_SYSTEM_SECRETS = (
    *("/etc/shadow", "/etc/shadow-", "/etc/gshadow", "/etc/gshadow-", "/etc/sudoers", "/etc/sudoers.d"),
    *("/etc/ssl/private", "/var/backups"),
)


class Visibility(Frozen):
    """Real absolute paths."""

    workspace: str
    temporary: str
    """Folder with two folders for commands: `own` is their /tmp, `shm` their /dev/shm, where possible."""
    hidden: tuple[str, ...]
    guarded: tuple[str, ...]
    """Read-only paths inside the workspace."""


def visibility_of(
    workspace: Path, temporary: Path, home: Path, closed: Iterable[Path], guarded: Iterable[str]
) -> Visibility:
    """Return the paths that commands in this workspace can reach; `closed` are Duckflow's own folders."""
    wanted = (*(f"{home}/{name}" for name in SECRETS), *system_secrets(), *map(str, closed))
    root = os.path.realpath(workspace)
    real = {os.path.realpath(path) for path in wanted if os.path.exists(path)}
    return Visibility(
        workspace=root,
        temporary=os.path.realpath(temporary),
        hidden=outermost(path for path in real if not is_inside(root, path)),
        guarded=tuple(guarded),
    )


def system_secrets() -> Iterator[str]:
    """Return the system's files with passwords and keys, and their copies, if this user can read them."""
    return (path for path in _SYSTEM_SECRETS if os.access(path, os.R_OK))


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a folder, none if it is gone or not readable."""
    with suppress(OSError), os.scandir(folder) as entries:
        return list(entries)
    return []
