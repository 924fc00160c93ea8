"""Changes to review: their difference, and the files of the folder with them and without them (O4). Blocking.

Git reads the folder through a git directory of Duckflow's own, whose settings name no programs, and writes
new objects there. The repository stays as it is.
"""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import NamedTuple, NoReturn

from duckflow.domain.errors import ToolError, UsageError
from duckflow.safety.policy.protected import is_secret
from duckflow.safety.sandbox.copy.copies import PlacedFile
from duckflow.safety.sandbox.view.git_settings import run_git

STAGED = "--staged"
"""Word for the changes that are in git's index."""

MOST_SHOWN = 120_000
"""Largest difference in characters that a model gets; files beyond it are only named."""

_MOST_OF_ONE = 40_000
"""Largest difference of one file, if there are several."""

_MOST_BYTES = 100_000_000
_LARGEST_NEW, _MOST_NEW = 400_000, 500
"""Largest size in bytes and number of files that git does not know yet."""

_MOST_SEARCHED = 200_000
_SECONDS = 120
_LINK, _SUBMODULE, _GONE = "120000", "160000", "000000"
_DIFF = ("diff", "--no-color", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all", "--relative")
_SHOWN = ("-M", "--src-prefix=a/", "--dst-prefix=b/", "--unified=8")
_RAW = ("--raw", "-z", "--no-renames", "--no-abbrev")
_HIDDEN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0"}
_DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "origin/master", "main", "master")
_WHY = 300


Files = Mapping[str, PlacedFile]
"""Files by path; a path may stand for no file."""


class Changes(NamedTuple):
    """Changes to review."""

    name: str
    difference: str
    """Unified diff, as far as a model gets it."""
    files: Sequence[str]
    added: int
    removed: int
    left_out: Sequence[str]
    """Changed files whose difference a model does not get."""
    reviewed: Files
    """Files with the changes, where they differ from the folder as it is now."""
    base: Files
    """Versions from before the changes, for each file that the changes touch."""


def find_changes(folder: Path, wanted: str, patch: bytes | None = None) -> Changes:
    """Find the changes that a user names: none means uncommitted, else `--staged`, a commit, branch or range.

    `patch` is the content of a patch, if `wanted` names one. ToolError if there are no such changes.
    """
    with tempfile.TemporaryDirectory(prefix="duckflow-review-") as place:
        try:
            return _ReadRepository(folder, Path(place)).changes(wanted.strip(), patch)
        except subprocess.TimeoutExpired as exc:
            raise ToolError("git took too long.", "review.git_failed", reason="timeout") from exc
        except FileNotFoundError as exc:
            raise ToolError("git is not installed.", "review.no_git_program") from exc


def read_patch(folder: Path, wanted: str) -> bytes | None:
    """Return the content of the patch file that a user names, None for a commit or branch."""
    try:
        return (folder / wanted).read_bytes() if is_patch(folder, wanted) else None
    except OSError as exc:
        raise UsageError("review.no_patch", path=wanted, reason=exc.strerror or exc) from exc


def is_patch(folder: Path, wanted: str) -> bool:
    """Return whether a word names a patch file, and not a commit or branch."""
    place = folder / wanted
    if not wanted or not place.is_file():
        return False
    with place.open("rb") as file:
        return place.suffix in (".patch", ".diff") or b"\n@@ " in b"\n" + file.read(_MOST_SEARCHED)


class _ReadRepository:
    """The repository around a folder, seen through a git directory of our own."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder = folder
        self.top = next((one for one in (folder, *folder.parents) if (one / ".git").exists()), None)
        top = self.top or folder
        kind = self._real("rev-parse", "--show-object-format").strip() if self.top else "sha1"
        bare = place / "bare"
        _checked(
            run_git(
                ("init", "--quiet", "--bare", f"--object-format={kind or 'sha1'}", "--template=", str(bare)),
                _HIDDEN,
                seconds=_SECONDS,
            )
        )
        self._own = {**_HIDDEN, "GIT_DIR": str(bare), "GIT_WORK_TREE": str(top)}
        self._own["GIT_INDEX_FILE"] = str(place / "index")
        if self.top:
            objects = top / self._real("rev-parse", "--git-path", "objects").strip()
            self._own["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = (
                f'"{objects}"' if ":" in str(objects) else str(objects)
            )
            index = top / self._real("rev-parse", "--git-path", "index").strip()
            if index.exists():
                shutil.copy2(index, place / "index")  # git compares its time with those of files

    def changes(self, wanted: str, patch: bytes | None) -> Changes:
        if patch is not None:
            return self._of_patch(wanted, patch)
        if self.top is None:
            raise ToolError(
                "There is no git repository here; only a patch file can be reviewed.", "review.no_git"
            )
        if wanted == STAGED:
            base, reviewed = self._head(), self._tree()
            self._take_folder()
            return self._between(wanted, base, reviewed, self._tree())
        if wanted:
            base, reviewed = self._range(wanted)
            self._take_folder()
            return self._between(wanted, base, reviewed, self._tree())
        self._take_folder(new=True)
        reviewed = self._tree()
        return self._between("", self._head(), reviewed, reviewed)

    # Commits

    def _head(self) -> str:
        return self._commit("HEAD") or self._empty_tree()

    def _empty_tree(self) -> str:
        return self._git("hash-object", "-t", "tree", "-w", "--stdin").decode().strip()

    def _commit(self, name: str) -> str:
        if name.startswith("-") or not name:
            return ""
        return self._real("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}").strip()

    def _named(self, name: str, wanted: str) -> str:
        found = self._commit(name or "HEAD")
        if not found:
            raise ToolError(
                f"git knows no commit or branch {name[:80]!r}, and there is no patch file of this name.",
                "review.unknown",
                name=(name or wanted)[:80],
            )
        return found

    def _merge_base(self, one: str, other: str) -> str:
        found = self._real("merge-base", one, other).strip()
        if not found:
            raise ToolError("These commits have no common ancestor here.", "review.no_ancestor")
        return found

    def _range(self, wanted: str) -> tuple[str, str]:
        """Return the commits or trees before and after the named changes."""
        for sign in ("...", ".."):
            if sign in wanted:
                start, end = (self._named(part, wanted) for part in wanted.split(sign, 1))
                return (self._merge_base(start, end) if sign == "..." else start), end
        commit, head = self._named(wanted, wanted), self._named("HEAD", wanted)
        current = self._real("symbolic-ref", "--quiet", "--short", "HEAD").strip()
        is_branch = bool(self._real("show-ref", "--", f"refs/heads/{wanted}", f"refs/remotes/{wanted}"))
        if not is_branch:
            return self._commit(f"{commit}^") or self._empty_tree(), commit
        if wanted != current:
            ancestor = self._merge_base(commit, head)
            # A branch that has nothing new is the one to compare with.
            return (ancestor, head) if ancestor == commit else (ancestor, commit)
        for other in _DEFAULT_BRANCHES:
            if other != current and (found := self._commit(other)) and found != head:
                return self._merge_base(found, head), head
        raise ToolError(
            f"There is no other branch to compare {wanted[:80]} with; name a range such as HEAD~3..HEAD.",
            "review.no_other_branch",
            name=wanted[:80],
        )

    # The folder

    def _take_folder(self, *, new: bool = False) -> None:
        """Put the files as they are in the folder into our index, with `new` also those git does not know."""
        changed = _names(
            self._git("diff-files", "-z", "--name-only", "--ignore-submodules=all", folder=self.top)
        )
        untracked = self._untracked() if new else []
        given = "".join(f"{path}\0" for path in (*changed, *untracked)).encode("utf-8", "surrogateescape")
        self._git("update-index", "--add", "--remove", "-z", "--stdin", given=given, folder=self.top)

    def _untracked(self) -> list[str]:
        assert self.top
        inside = {**_HIDDEN, "GIT_DIR": self._real("rev-parse", "--absolute-git-dir").strip()}
        words = ("ls-files", "--others", "--exclude-standard", "--full-name", "-z")
        done = run_git(
            words, {**inside, "GIT_WORK_TREE": str(self.top)}, folder=str(self._folder), seconds=_SECONDS
        )
        return [path for path in _names(_checked(done)) if self._is_small(path)][:_MOST_NEW]

    def _is_small(self, path: str) -> bool:
        assert self.top
        with suppress(OSError):
            return (self.top / path).lstat().st_size <= _LARGEST_NEW and not is_secret(path)
        return False

    def _tree(self) -> str:
        try:
            return self._git("write-tree").decode().strip()
        except ToolError as exc:
            raise ToolError("The index has conflicts that are not resolved yet.", "review.conflicts") from exc

    def _of_patch(self, wanted: str, patch: bytes) -> Changes:
        """Take a patch as changes that the folder already has, if it does, else as changes to it."""
        self._take_folder()
        numbers = ("apply", "--numstat", "-z", "--unsafe-paths", "-")
        try:
            named = self._git(*numbers, given=patch, folder=self.top or self._folder)
        except ToolError as exc:
            raise ToolError(
                f"This is no patch that git can read: {exc}", "review.bad_patch", reason=str(exc)
            ) from exc
        top = self.top or self._folder
        paths = [path for path in _patched(named) if (top / path).is_file() and ".." not in Path(path).parts]
        given = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
        self._git("update-index", "--add", "-z", "--stdin", given=given, folder=top)
        now = self._tree()
        for words in (("--reverse",), ()):
            done = self._try("apply", "--cached", "--whitespace=nowarn", *words, "-", given=patch, folder=top)
            if done.returncode == 0:
                base, reviewed = (self._tree(), now) if words else (now, self._tree())
                return self._between(wanted, base, reviewed, now)
        reason = done.stderr.decode("utf-8", "replace").strip()[:_WHY]
        raise ToolError(
            f"The patch does not fit the files here: {reason}", "review.not_applied", reason=reason
        )

    # Differences

    def _between(self, name: str, base: str, reviewed: str, now: str) -> Changes:
        numbers = [*_numbers(self._git(*_DIFF, "-M", "--numstat", "-z", base, reviewed))]
        if not numbers:
            key = "review.nothing_uncommitted" if not name else "review.nothing"
            raise ToolError("There are no changes to review.", key, name=name)
        shown, left_out = self._shown(base, reviewed)
        budget = _Budget()
        return Changes(
            name=name,
            difference=shown,
            files=tuple(path for path, _, _ in numbers),
            added=sum(added for _, added, _ in numbers),
            removed=sum(removed for _, _, removed in numbers),
            left_out=left_out,
            reviewed=self._states(now, reviewed, budget),
            base=self._states(reviewed, base, budget),
        )

    def _shown(self, base: str, reviewed: str) -> tuple[str, tuple[str, ...]]:
        """Return the difference as far as it fits, and the files left out: secrets, and the largest ones."""
        text = self._git(*_DIFF, *_SHOWN, base, reviewed).decode("utf-8", "replace")
        parts = [f"diff --git {part}" for part in f"\n{text}".split("\ndiff --git ")[1:]]
        most = MOST_SHOWN if len(parts) == 1 else _MOST_OF_ONE
        by_size = sorted(range(len(parts)), key=lambda number: len(parts[number]))
        kept: set[int] = set()
        room = MOST_SHOWN
        for number in by_size:
            secret = is_secret(_path_of(parts[number]))
            if not secret and len(parts[number]) <= min(most, room):
                kept.add(number)
                room -= len(parts[number])
        left_out = tuple(_path_of(part) for number, part in enumerate(parts) if number not in kept)
        return "\n".join(parts[number].rstrip("\n") for number in sorted(kept)), left_out

    def _states(self, start: str, end: str, budget: "_Budget") -> dict[str, PlacedFile]:
        """Return the files at `end` that differ from those at `start`."""
        entries = [*_raw(self._git(*_DIFF, *_RAW, start, end))]
        objects = [name for mode, name, _ in entries if mode not in (_GONE, _SUBMODULE)]
        contents = self._contents(objects, budget)
        return {
            path: PlacedFile(None)
            if mode == _GONE
            else PlacedFile(contents[name], executable=mode == "100755", link=mode == _LINK)
            for mode, name, path in entries
            if mode != _SUBMODULE
        }

    def _contents(self, names: Iterable[str], budget: "_Budget") -> Mapping[str, bytes]:
        wanted = list(dict.fromkeys(names))
        given = "".join(f"{name}\n" for name in wanted).encode()
        sizes = self._git("cat-file", "--batch-check=%(objectsize)", given=given).split()
        budget.use(sum(int(size) for size in sizes if size.isdigit()))
        answer = BytesIO(self._git("cat-file", "--batch", given=given))
        found: dict[str, bytes] = {}
        for name in wanted:
            size = int(answer.readline().split()[-1])
            found[name] = answer.read(size + 1)[:-1]
        return found

    # Git

    def _real(self, *words: str) -> str:
        """Ask the repository itself about its commits; empty if git refuses."""
        done = run_git(words, _HIDDEN, folder=str(self.top), seconds=_SECONDS)
        return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""

    def _git(self, *words: str, given: bytes = b"", folder: Path | None = None) -> bytes:
        return _checked(self._try(*words, given=given, folder=folder))

    def _try(
        self, *words: str, given: bytes = b"", folder: Path | None = None
    ) -> "subprocess.CompletedProcess[bytes]":
        place = str(folder or self._folder)
        return run_git(words, self._own, given, folder=place, seconds=_SECONDS)


class _Budget:
    """Limit for the bytes of all files together."""

    def __init__(self) -> None:
        self._left = _MOST_BYTES

    def use(self, size: int) -> None:
        """ToolError if more is used than allowed."""
        self._left -= size
        if self._left < 0:
            megabytes = _MOST_BYTES // 1_000_000
            raise ToolError("These changes are too large to review.", "review.too_large", megabytes=megabytes)


def _checked(done: "subprocess.CompletedProcess[bytes]") -> bytes:
    if done.returncode:
        _fail(done.stderr.decode("utf-8", "replace").strip()[:_WHY])
    return done.stdout


def _fail(reason: str) -> NoReturn:
    raise ToolError(f"git could not read the changes: {reason}", "review.git_failed", reason=reason)


def _names(answer: bytes) -> list[str]:
    return [name for name in answer.decode("utf-8", "surrogateescape").split("\0") if name]


def _path_of(part: str) -> str:
    """Return the path of one file's part of a diff."""
    lines = part.split("\n@@ ", 1)[0].split("\n")
    for sign in ("+++ b/", "rename to ", "--- a/"):
        for line in lines:
            if line.startswith(sign):
                return line.removeprefix(sign).rstrip("\t")
    return lines[0].rpartition(" b/")[2]


def _numbers(answer: bytes) -> Iterator[tuple[str, int, int]]:
    """Yield path, added and removed lines from `git diff --numstat -z`, for a renamed file its new path."""
    words = iter(answer.decode("utf-8", "surrogateescape").split("\0")[:-1])
    for entry in words:
        added, removed, path = entry.split("\t", 2)
        path = path or [next(words), next(words)][1]
        yield path, int(added) if added.isdigit() else 0, int(removed) if removed.isdigit() else 0


def _patched(answer: bytes) -> Iterator[str]:
    """Yield the paths that `git apply --numstat -z` names; a renamed file has two."""
    for entry in _names(answer):
        yield entry.split("\t", 2)[-1] if entry.count("\t") >= 2 else entry


def _raw(answer: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield mode, object and path after a change from `git diff --raw -z`."""
    words = _names(answer)
    for head, path in zip(words[::2], words[1::2], strict=True):
        _, mode, _, name, _ = head.split()
        yield mode, name, path
