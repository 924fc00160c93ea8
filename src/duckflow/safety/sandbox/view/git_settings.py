"""Git calls by Duckflow itself, and git settings for commands: the committer's name, but no logins."""

import shutil
import subprocess
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory

_SECONDS = 5.0
_FOLDERS = "/usr/bin:/usr/local/bin:/bin:/opt/homebrew/bin:/run/current-system/sw/bin"
_HARMLESS = (
    *("-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false"),
    *("-c", "core.excludesFile=/dev/null", "-c", "core.attributesFile=/dev/null", "-c", "safe.directory=*"),
)
IGNORED = ".gitignore-secrets"
"""File in the home folder of commands that lists the secrets git must ignore."""

_LITERAL = {"GIT_LITERAL_PATHSPECS": "1"}
_OFFLINE = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}
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
    asked = _enough(paths)
    return _ignored(root, asked) if asked and Path(root, ".git").exists() else frozenset()


def current_commit(root: str) -> str:
    """Return the commit that is checked out, empty if there is none."""
    if not Path(root, ".git").exists():
        return ""
    return _run(("-C", root, "rev-parse", "--verify", "-q", "HEAD^{commit}"), _HIDDEN).strip()


def ignored_by_commit(root: str, commit: str, paths: list[str]) -> frozenset[str]:
    """Return the paths that the rules in a commit ignore, without files that it or the index contains.

    Rules that only lie in the folder do not count, because a command may just have written them.
    """
    asked = _enough(paths)
    if not asked or not commit:
        return frozenset()
    folders = dict.fromkeys(above for path in asked for above in _folders_above(path))
    with TemporaryDirectory(prefix="duckflow-") as place:
        for name in ("objects", "refs"):
            Path(place, ".git", name).mkdir(parents=True)
        Path(place, ".git/HEAD").write_text("ref: refs/heads/main\n", "ascii")
        for path, rules in _contents(root, commit, (f"{one}.gitignore" for one in folders)):
            Path(place, path).parent.mkdir(parents=True, exist_ok=True)
            Path(place, path).write_bytes(rules)
        found = _ignored(place, asked)
    files = [path for path in found if not path.endswith("/")]
    return found.difference(tracked_files(root, files, commit))


def tracked_files(root: str, folders: list[str], commit: str = "") -> frozenset[str]:
    """Return the files below these folders that git tracks, now or in a commit."""
    found: set[str] = set()
    for start in range(0, len(folders) if Path(root, ".git").exists() else 0, _MOST_FOLDERS):
        some = folders[start : start + _MOST_FOLDERS]
        found |= _names(_run(("-C", root, "ls-files", "-z", "--", *some), {**_HIDDEN, **_LITERAL}))
        if commit:
            words = ("-C", root, "ls-tree", "-r", "-z", "--name-only", "--full-tree", commit, "--", *some)
            found |= _names(_run(words, _HIDDEN))
    return frozenset(found)


def tracked_entries(root: str, paths: list[str]) -> str:
    """Return the index entries for tracked files at and below these paths, in git's own format."""
    words = ("-C", root, "ls-files", "--stage", "--debug", "-z", "--", *paths)
    return _run(words, {**_HIDDEN, **_LITERAL})


def read_objects(directory: str, ids: Collection[str]) -> dict[str, tuple[str, bytes]]:
    """Return type and content of those objects that a git directory has. Nothing if git fails."""
    return {name: (kind, data) for name, kind, data in _objects(("--git-dir", directory), ids)}


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


def _enough(paths: list[str]) -> list[str]:
    """Return the paths to ask about: only the folders if there are too many files."""
    asked = paths if len(paths) <= _MOST_PATHS else [path for path in paths if path.endswith("/")]
    return asked if len(asked) <= _MOST_PATHS else []


def _ignored(root: str, paths: list[str]) -> frozenset[str]:
    given = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    return _names(_run(("-C", root, "check-ignore", "-z", "--stdin"), _HIDDEN, given))


def _folders_above(path: str) -> Iterator[str]:
    """Yield the folders that contain a path, each with a slash at its end; the first is empty."""
    names = path.rstrip("/").split("/")
    yield from ("".join(f"{name}/" for name in names[:end]) for end in range(len(names)))


def _contents(root: str, commit: str, paths: Iterable[str]) -> Iterator[tuple[str, bytes]]:
    """Yield those of these files that a commit has, with their contents."""
    asked = {f"{commit}:{path}": path for path in paths if "\n" not in path}
    yield from ((asked[name], data) for name, kind, data in _objects(("-C", root), asked) if kind == "blob")


def _objects(where: tuple[str, ...], names: Collection[str]) -> Iterator[tuple[str, str, bytes]]:
    """Yield those of the named objects that exist, with their types and contents."""
    given = "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape")
    words = (*where, "cat-file", "--batch", "--buffer")
    try:
        answer = BytesIO(run_git(words, {**_HIDDEN, "GIT_NO_REPLACE_OBJECTS": "1"}, given).stdout)
    except (OSError, subprocess.TimeoutExpired):
        return
    for name in names:
        *_, kind, size = answer.readline().split() or (b"", b"")
        if size.isdigit():
            yield name, kind.decode(), answer.read(int(size) + 1)[:-1]


def _names(answer: str) -> frozenset[str]:
    return frozenset(name for name in answer.split("\0") if name)


def _run(words: tuple[str, ...], environment: Mapping[str, str], given: bytes = b"") -> str:
    try:
        answer = run_git(words, environment, given)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return answer.stdout.decode("utf-8", "surrogateescape")
