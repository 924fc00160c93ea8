"""Which folders a project ignores, as git says it of the folder itself, not of the copy of a command."""

import subprocess
from pathlib import Path

_SECONDS = 5.0
_GITS = (
    "/usr/bin/git",
    "/usr/local/bin/git",
    "/bin/git",
    "/opt/homebrew/bin/git",
    "/run/current-system/sw/bin/git",
)
_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"),
    *("-c", "core.excludesFile=/dev/null", "-c", "core.attributesFile=/dev/null", "-c", "safe.directory=*"),
)
_MOST = 5_000


def ignored_folders(root: str, folders: list[str]) -> frozenset[str]:
    """Those of the folders that git ignores here; none where there is no repository."""
    git = next((one for one in _GITS if Path(one).exists()), None)
    if git is None or not folders or len(folders) > _MOST or not Path(root, ".git").exists():
        return frozenset()
    asked = "".join(f"{folder}/\0" for folder in folders)
    try:
        answer = subprocess.run(  # noqa: S603 - git of the system, with everything off that runs programs
            [git, "-C", root, *_HARMLESS, "check-ignore", "-z", "--stdin"],
            input=asked.encode("utf-8", "surrogateescape"),
            env={"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_OPTIONAL_LOCKS": "0"},
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    names = answer.stdout.decode("utf-8", "surrogateescape").split("\0")
    return frozenset(name.rstrip("/") for name in names if name)
