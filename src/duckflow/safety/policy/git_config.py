"""Git's configuration files, read by git's own rules, and the paths to which settings lead (G9, SAFETY 4)."""

import os
import posixpath
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex
from duckflow.safety.descriptors import read_regular

Setting = tuple[str, str | None]
"""Name and value. The value is None if the line has no equals sign, which means true."""

ReadFile = Callable[[str], bytes | None]
"""Reads a file by its path in the workspace. Returns None if there is no such file.

Raises UnreadableFile if it exists but can't be read as a whole.
"""


class UnreadableFile(Exception):
    """Raised for a file that can't be read, so that the rules can't check it."""


_ESCAPES = {"t": "\t", "b": "\b", "n": "\n", "\\": "\\", '"': '"'}
_KEY = lazy_regex(r"[A-Za-z][A-Za-z0-9-]*")
_SECTION = lazy_regex(r"[A-Za-z0-9.-]+")
_INCLUDE = lazy_regex(r"include\.path|includeif\..*\.path")
_DATA = lazy_regex(
    r"(user|author|committer|branch|color|column|advice|extensions|gui|push|pull|fetch|rebase|rerere|status|log"
    r"|feature|index|pack|apply|protocol|safe|i18n|sparse|commitgraph|transfer|tag|versionsort|url)\..*"
    r"|init\.defaultbranch|core\.(repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|worktree"
    r"|autocrlf|eol|safecrlf|quotepath|abbrev|compression|untrackedcache|checkstat|trustctime|whitespace)"
    r"|remote\..*\.(url|pushurl|fetch|push|mirror|prune|tagopt|promisor|partialclonefilter|skip\w*)"
    r"|gc\.(?!recentobjectshook).*|submodule\..*\.(url|active|branch|ignore|fetchrecursesubmodules)|include\.path|includeif\..*",
    # The values of these settings are neither paths in the work tree nor commands.
)
_BREAKS = lazy_regex(r"[\s'\"`(){};&|<>$=:,!]+")
_SEARCHED = lazy_regex(r"\bPATH=([^\s;&|'\"]+)")
_VARIABLE = lazy_regex(r"\$\{?\w+\}?/?")
_MODULE = (".py", "/__init__.py", "/__main__.py")
_MOST_FILES = 100
_MOST_OUTSIDE = 1 << 20
HOOKS = (
    *("applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "commit-msg"),
    *("prepare-commit-msg", "post-commit", "pre-rebase", "post-checkout", "post-merge", "pre-push", "update"),
    *(
        "pre-receive",
        "proc-receive",
        "post-receive",
        "post-update",
        "reference-transaction",
        "push-to-checkout",
    ),
    *("pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"),
)
"""Names of the programs that git runs as hooks."""


def read_settings(text: bytes) -> list[Setting] | None:
    """Return the settings of a file in order. None if git would reject the file."""
    found, whole = _read(text)
    return found if whole else None


class LedTo(NamedTuple):
    """Paths in the workspace to which settings lead."""

    files: frozenset[str] = frozenset()
    """Settings, programs and scripts."""
    folders: frozenset[str] = frozenset()
    """Values that may be a folder, such as that of hooks. They cover everything below them."""
    ends: frozenset[str] = frozenset()
    """Ends of paths, for those that a command names relative to a folder that only a shell knows."""

    def covers(self, path: str) -> bool:
        """Return whether the path is one of these."""
        if path in self.files or path in self.folders or path in self.ends:
            return True
        if any(path.startswith(f"{folder}/") for folder in self.folders):
            return True
        return any(path[at + 1 :] in self.ends for at, letter in enumerate(path) if letter == "/")

    def joined(self, other: "LedTo") -> "LedTo":
        """Return the paths of both."""
        return LedTo(self.files | other.files, self.folders | other.folders, self.ends | other.ends)


class GitPlaces(NamedTuple):
    """Paths outside the workspace: the workspace itself, the home folder, and the user's own settings."""

    root: str = ""
    home: str = ""
    user_files: tuple[str, ...] = ()
    git_outside: str | None = None
    """Git directory to which the `.git` file of the workspace points."""

    def git_directory(self, place: str) -> str:
        """Return where a git directory really is, by its path in the workspace. Empty if that is unknown."""
        if self.git_outside and f"{place}/".startswith(".git/"):
            return f"{self.git_outside}{place[4:]}"
        return f"{self.root}/{place}" if self.root else ""

    def find(self, folder: str, path: str) -> str:
        """Return a path as relative to the workspace if it lies there, otherwise as absolute."""
        if path.startswith("~/") and self.home:
            path = f"{self.home}{path[1:]}"
        found = posixpath.normpath(posixpath.join(folder, path.replace("\0", "")))
        if not self.root:
            return found
        if found == ".." or found.startswith("../"):
            found = posixpath.normpath(f"{self.root}/{found}")
        return found.removeprefix(f"{self.root}/")

    def resolved(self, path: str) -> str:
        """Return where a path leads through links, as relative to the workspace if that is inside it."""
        if not self.root or path.startswith("/"):
            return path
        return os.path.realpath(f"{self.root}/{path}").removeprefix(f"{self.root}/")


def git_places(root: str, environment: Mapping[str, str]) -> GitPlaces:
    """Return the places for a workspace. The user's own settings may lead into it, too."""
    home = environment.get("HOME", "")
    config = environment.get("XDG_CONFIG_HOME") or f"{home}/.config"
    own = environment.get("GIT_CONFIG_GLOBAL")
    system = environment.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig")
    named = [own] if own else [f"{config}/git/config", f"{home}/.gitconfig"]
    places = GitPlaces(root, home)
    machine = [] if environment.get("GIT_CONFIG_NOSYSTEM") else [system]
    return places._replace(user_files=tuple(places.find("/", one) for one in (*machine, *named)))


def paths_led_to(config: Iterable[str], top: str, read: ReadFile, places: GitPlaces) -> LedTo:
    """Return the paths that these files name: other settings, hooks, programs, scripts.

    `top` is the folder of the work tree. Conditions of includes are not evaluated: each counts as true. A
    line that git would reject does not hide the lines around it.
    """
    files, folders, ends = set[str](), set[str](), set[str]()
    waiting, done = list(config), set[str]()
    while waiting:
        path = waiting.pop()
        if path in done or len(done) >= _MOST_FILES:
            continue
        done.add(path)
        text = read_regular(path, _MOST_OUTSIDE) if path.startswith("/") else read(path)
        for name, value in _read(text or b"")[0]:
            if not value:
                continue
            if _INCLUDE.fullmatch(name):
                waiting.append(places.find(posixpath.dirname(path), value))
            elif _DATA.fullmatch(name):
                command = next((one.partition("ext::")[2] for one in (value, name) if "ext::" in one), "")
                ends.update(_ends_in(command))
            else:
                folders.add(whole := places.find(top, value))
                searched = (one for part in _SEARCHED.findall(value) for one in part.split(":"))
                folders.update(places.find(top, one) for one in searched if one)
                files.update(_words_in(top, value, places))
                ends.update(_ends_in(value))
                if name == "core.hookspath" and whole == (top or "."):
                    files.update(posixpath.join(top, hook) for hook in HOOKS)
    files |= done
    folders -= {".", top}
    files |= set(map(places.resolved, files))
    folders |= set(map(places.resolved, folders))
    return LedTo(frozenset(files), frozenset(folders), frozenset(ends))


def _words_in(top: str, value: str, places: GitPlaces) -> Iterator[str]:
    """Yield the paths that the words of a command may name."""
    command = value.removeprefix("!")
    words = command.split()
    with suppress(ValueError):
        words += shlex.split(command)
    bare = (word.strip("'\"(){};&|<>$`") for word in words)
    for word in dict.fromkeys((*words, *bare)):
        if word and not word.startswith("-"):
            yield places.find(top, word)


def _ends_in(command: str) -> Iterator[str]:
    """Yield the ends of paths that a shell may find in a command: after `cd`, in options and assignments."""
    words = [word for word in _BREAKS.split(_VARIABLE.sub("./", command)) if word]
    moves = "cd" in words
    for before, word in pairwise(("", *words)):
        if before == "-m":
            yield from (f"{word.replace('.', '/')}{end}" for end in _MODULE)
        named = word[2:] if word.startswith("-") else word  # an option with its value, such as -Fsub/settings
        if moves or "/" in named or "." in named:
            while named.startswith(("./", "../")):
                named = named.partition("/")[2]
            if named and not named.startswith(("/", "~")):
                yield named


def _read(text: bytes) -> tuple[list[Setting], bool]:
    """Return the settings, and whether git would accept all of the text. Skips what it would not accept."""
    source = text.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "surrogateescape").replace("\r\n", "\n")
    reading = _Reading(source)
    return reading.settings(), reading.whole


class _Reading:
    """One reading of a configuration, character by character as in git's config.c."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._section = ""
        self.whole = True

    def settings(self) -> list[Setting]:
        found: list[Setting] = []
        while self._at < len(self._text):
            start = self._at
            letter = self._text[start]
            if letter in " \t\n\r\v\f":
                self._at += 1
            elif letter in "#;":
                self._skip_line()
            else:
                try:
                    if letter == "[":
                        self._section = self._heading()
                    else:
                        found.append(self._setting())
                except ValueError:
                    self.whole = False
                    self._at = start + 1
        return found

    def _skip_line(self) -> None:
        end = self._text.find("\n", self._at)
        self._at = len(self._text) if end < 0 else end + 1

    def _next(self) -> str:
        """Return the next character, a line end at the end of the file."""
        letter = self._text[self._at] if self._at < len(self._text) else "\n"
        self._at += 1
        return letter

    def _heading(self) -> str:
        self._at += 1
        match = _SECTION.match(self._text, self._at)
        if match is None:
            raise ValueError
        self._at = match.end()
        name = match[0].lower()
        letter = self._next()
        if letter == "]":
            return name
        while letter in " \t":
            letter = self._next()
        if letter != '"':
            raise ValueError
        return f"{name}.{self._subsection()}"

    def _subsection(self) -> str:
        letters: list[str] = []
        while (letter := self._next()) != '"':
            if letter == "\\":
                letter = self._next()
            if letter == "\n":
                raise ValueError
            letters.append(letter)
        if self._next() != "]":
            raise ValueError
        return "".join(letters)

    def _setting(self) -> Setting:
        match = _KEY.match(self._text, self._at)
        if match is None:
            raise ValueError
        self._at = match.end()
        letter = self._next()
        while letter in " \t":
            letter = self._next()
        if letter not in "=\n":
            raise ValueError
        if not self._section:
            raise ValueError
        return f"{self._section}.{match[0].lower()}", None if letter == "\n" else self._value()

    def _value(self) -> str:
        letters: list[str] = []
        quoted, kept = False, 0
        while (letter := self._next()) != "\n":
            if not quoted and letter in "#;":
                self._skip_line()
                break
            if not quoted and letter in " \t\r\v\f":
                if letters:
                    letters.append(letter)
                continue
            if letter == '"':
                quoted = not quoted
                kept = len(letters)
                continue
            if letter == "\\":
                letter = self._next()
                if letter == "\n":
                    continue
                if letter not in _ESCAPES:
                    raise ValueError
                letter = _ESCAPES[letter]
            letters.append(letter)
            kept = len(letters)
        if quoted:
            raise ValueError
        return "".join(letters[:kept])
