"""Git calls by Duckflow itself, and git settings for commands: the committer's name, but no logins."""

import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

_SECONDS = 5.0
_FOLDERS = "/usr/bin:/usr/local/bin:/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"),
    *("-c", "core.excludesFile=/dev/null", "-c", "core.attributesFile=/dev/null", "-c", "safe.directory=*"),
)
IGNORED = ".gitignore-secrets"
"""File in the home folder of commands that lists the secrets git must ignore."""

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_OFFLINE = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1"}
"""Keep git from fetching missing objects: the repository would choose the address and the program."""

_HIDDEN = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_OPTIONAL_LOCKS": "0"}
_MOST_PATHS, _MOST_FOLDERS = 5_000, 100
_PASSED_ON = (
    *("user.name", "user.email", "init.defaultbranch", "core.autocrlf", "core.eol", "core.quotepath"),
    *("core.ignorecase", "core.abbrev", "core.commentchar", "merge.conflictstyle", "merge.ff", "pull.rebase"),
    *("pull.ff", "rebase.autostash", "rebase.autosquash", "diff.algorithm", "diff.renames", "fetch.prune"),
    *("push.default", "push.autosetupremote", "rerere.enabled", "status.short", "log.date", "tag.sort"),
)
"""Settings to pass on to commands. None of them starts a program. Aliases are passed on, too."""


def ignored_paths(root: str, paths: list[str]) -> frozenset[str]:
    """Return the paths that git ignores by the rules in the repository. Names of folders end in a slash."""
    asked = paths if len(paths) <= _MOST_PATHS else [path for path in paths if path.endswith("/")]
    if not asked or len(asked) > _MOST_PATHS or not Path(root, ".git").exists():
        return frozenset()
    given = "".join(f"{path}\0" for path in asked).encode("utf-8", "surrogateescape")
    return _names(_run(("-C", root, "check-ignore", "-z", "--stdin"), _HIDDEN, given))


def tracked_files(root: str, folders: list[str]) -> frozenset[str]:
    """Return the files below these folders that git tracks."""
    if not folders or len(folders) > _MOST_FOLDERS or not Path(root, ".git").exists():
        return frozenset()
    return _names(_run(("-C", root, "ls-files", "-z", "--", *folders), {**_HIDDEN, **_LITERAL}))


def tracked_entries(root: str, paths: list[str]) -> str:
    """Return the index entries for tracked files at and below these paths, in git's own format."""
    words = ("-C", root, "ls-files", "--stage", "--debug", "-z", "--", *paths)
    return _run(words, {**_HIDDEN, **_LITERAL})


def passed_on(home: str, environment: Mapping[str, str]) -> str:
    """Return a git configuration file for the home that commands see."""
    names = {name: environment[name] for name in ("XDG_CONFIG_HOME",) if name in environment}
    said = _run(("config", "--global", "--includes", "--list", "-z"), {"HOME": home, **names})
    # The empty file shown for a secret has the secret's size and time; git must compare only these.
    lines = [f"[core]\n\tcheckStat = minimal\n\texcludesFile = ~/{IGNORED}\n"]
    for entry in said.split("\0"):
        key, _, value = entry.partition("\n")
        section, _, name = key.partition(".")
        wanted = key.lower() in _PASSED_ON or (section == "alias" and not value.lstrip().startswith("!"))
        if wanted and "\n" not in value:
            quoted = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'[{section}]\n\t{name} = "{quoted}"\n')
    return "".join(lines)


def run_git(
    words: Iterable[str],
    environment: Mapping[str, str],
    given: bytes = b"",
    *,
    folder: str = "/",
    seconds: float = _SECONDS,
) -> "subprocess.CompletedProcess[bytes]":
    """Run the system's git so that it starts no programs and uses no network (SAFETY 17).

    Raises OSError if git is missing, TimeoutExpired if it takes too long. Settings of the user and the
    machine are used only if `environment` names their files.
    """
    git = _find_git()
    if git is None:
        raise FileNotFoundError("git")
    return subprocess.run(  # noqa: S603 - see above
        [git, *_HARMLESS, *words],
        input=given,
        env={**_OFFLINE, **environment},
        cwd=folder,
        capture_output=True,
        timeout=seconds,
        check=False,
    )


@cache
def _find_git() -> str | None:
    """Find git, but only in system folders, to which no project can write."""
    return shutil.which("git", path=_FOLDERS)


def _names(answer: str) -> frozenset[str]:
    return frozenset(name for name in answer.split("\0") if name)


def _run(words: tuple[str, ...], environment: Mapping[str, str], given: bytes = b"") -> str:
    try:
        answer = run_git(words, environment, given)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "surrogateescape")
