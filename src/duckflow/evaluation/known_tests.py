"""Recognizes tests that the model ran: passed ones are not repeated, others run the same way (J10). Pure.

A run counts only if it is unambiguous: one pytest call for these files, a last line that reports success, no
file changed since, and otherwise only commands that read.
"""

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_PASSED = lazy_regex(r"^[= ]*\d+ passed(?:, \d+ (?:skipped|warnings?|xfailed|xpassed))* in [\d.:]+s?.*$")
_COUNTS = lazy_regex(r"\b\d+ (?:passed|failed|errors?)\b.* in \d")
_BETWEEN = ("&&", "||", ";", "|")
_FILTERS = ("tail", "head", "cat")
"""Programs after a pipe that pass on part of the output unchanged."""

_LOOKS = frozenset(("ls", "true", "wc"))
_GIT_LOOKS = frozenset(("diff", "log", "status"))
"""Commands beside the tests that change nothing and can't print a test summary."""

_QUOTED = lazy_regex(r"`([^`\n]*\bpytest\b[^`\n]*)`|^[ $]*([^`\n]* -m pytest[^`\n]*)$", re.MULTILINE)
_NAME = lazy_regex(r"\$(?:(\w+)|\{(\w+)\})")
_VARIABLE = ("$", "`", "*", "?", "~")
"""Characters whose meaning only the shell can resolve."""

_FLAGS = frozenset(
    ("-q", "-qq", "-v", "-vv", "-x", "-s", "-l", "--exitfirst", "--quiet", "--verbose", "--no-header")
)
_PYTHON_FLAGS = ("-B", "-I", "-P", "-s", "-u")
_FLAGS_WITH_VALUE = ("--tb", "--color", "--durations", "--maxfail", "-r", "-n")
"""pytest options that deselect no tests; the second kind takes a value, in the same word or the next."""


class KnownRun(NamedTuple):
    """A command that succeeded with the current files."""

    command: str
    output: str
    evidence_id: str


def passed_in(test: str, runs: Iterable[KnownRun]) -> str:
    """Return the evidence id of a run in which all tests of this file passed; "" if there is none."""
    found = (run.evidence_id for run in runs if _covers(test, run.command) and _all_passed(run.output))
    return next(found, "")


def _all_passed(output: str) -> bool:
    """Return whether the output contains exactly one pytest summary, without failures."""
    lines = [line.strip() for line in output.splitlines()]
    summaries = [line for line in lines if _COUNTS.search(line)]
    return len(summaries) == 1 and _PASSED.match(summaries[0]) is not None


def _covers(test: str, command: str) -> bool:
    """Return whether the command certainly runs all tests of this file."""
    try:
        words = _words(command.strip())
    except ValueError:
        return False
    if any(_is_operator(word) and word not in _BETWEEN for word in words):
        return False
    parts = _parts(words)
    tests = [part for _, part in parts if _arguments(part) is not None]
    others = [one for one in parts if _arguments(one[1]) is None]
    if len(tests) != 1 or not all(_only_looks(*one) for one in others):
        return False
    return _runs_all_of(test, _arguments(tests[0]) or [])


def python_used(commands: Sequence[str], request: str = "") -> str:
    """Return the words that start Python: those of the request, of the last test run, or of the last use."""
    named = [found[1] or found[2] for found in _QUOTED.finditer(request)]
    for tests in (True, False):
        for command in (*named, *reversed(commands)):
            try:
                found = _python_in(_parts(_words(command)), tests=tests)
            except ValueError:
                continue
            if found:
                return found
    return ""


def _python_in(parts: Sequence[tuple[str, Sequence[str]]], *, tests: bool) -> str:
    """Return the words that start Python last in one command, for `tests`, with the variables set before."""
    variables: dict[str, str] = {}
    exported: dict[str, str] = {}
    used = ""
    for _, words in parts:
        exports = words[:1] == ["export"]
        settings, rest = _settings(words[1:] if exports else words)
        settings = [_filled(word, variables) for word in settings]
        rest = rest[2:] if rest[:1] == ["timeout"] else rest
        if not rest:
            variables |= dict(word.split("=", 1) for word in settings)
            exported |= dict(word.split("=", 1) for word in settings) if exports else {}
            continue
        name, *others = _filled(rest[0], variables).split() or [""]
        given, program = [*others, *rest[1:]], PurePosixPath(name)
        runs_tests = _arguments([name, *given]) is not None
        wanted = runs_tests if tests else program.name.startswith("python")
        if not wanted or program.parent == PurePosixPath():
            continue
        flags = given[: _flags(given)] if program.name != "pytest" else []
        if program.name == "pytest":
            program = program.with_name("python")
        own = dict(word.split("=", 1) for word in settings)
        start = [*(f"{name}={value}" for name, value in (exported | own).items()), program.as_posix(), *flags]
        if not any(sign in word for word in start for sign in _VARIABLE):
            used = " ".join(map(shlex.quote, start))
    return used


def _filled(word: str, variables: Mapping[str, str]) -> str:
    """Replace the variables whose values are known."""
    return _NAME.sub(lambda found: variables.get(found[1] or found[2], found[0]), word)


def _only_looks(before: str, words: Sequence[str]) -> bool:
    if not words:
        return True
    if words[0] == "git":
        return len(words) > 1 and words[1] in _GIT_LOOKS
    return words[0] in _FILTERS if before == "|" else words[0] in _LOOKS


def _words(command: str) -> list[str]:
    """Split a command into words and operators. Raises ValueError for an unclosed quotation."""
    lexer = shlex.shlex(command.replace("2>&1", " ").replace("\n", " ; "), posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    return list(lexer)


def _settings(words: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Split a command into its variable assignments and the rest."""
    count = 0
    while count < len(words) and "=" in words[count] and not words[count].startswith("-"):
        count += 1
    return words[:count], words[count:]


def _parts(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Split words into simple commands, each with the operator before it."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for word in words:
        if word in _BETWEEN:
            parts.append((word, []))
        else:
            parts[-1][1].append(word)
    return parts


def _flags(words: Sequence[str]) -> int:
    """Count the words in front that are options of Python, with their values."""
    count = 0
    while count < len(words) and (words[count] in _PYTHON_FLAGS or words[count].startswith(("-X", "-W"))):
        count += 2 if words[count] in ("-X", "-W") else 1
    return count


def _is_operator(word: str) -> bool:
    return bool(word) and all(letter in "();<>|&" for letter in word)


def _arguments(words: Sequence[str]) -> list[str] | None:
    """Return the arguments of `pytest` or `python -m pytest`; None for other commands."""
    _, words = _settings(words)
    words = words[2:] if list(words[:2]) == ["uv", "run"] else words
    if not words:
        return None
    program = PurePosixPath(words[0]).name
    if program == "pytest":
        return list(words[1:])
    flags = 1 + _flags(words[1:])
    if program.startswith("python") and list(words[flags : flags + 2]) == ["-m", "pytest"]:
        return list(words[flags + 2 :])
    return None


def _runs_all_of(test: str, arguments: Iterable[str]) -> bool:
    """Return whether pytest with these arguments runs all tests of the file."""
    paths: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if not word.startswith("-"):
            paths.append(word)
        elif word == "-p":
            if next(rest, "") != "no:cacheprovider":
                return False
        elif word not in _FLAGS and not word.startswith(_FLAGS_WITH_VALUE):
            return False
        elif word in _FLAGS_WITH_VALUE:
            next(rest, None)
    file = PurePosixPath(test)
    return any(PurePosixPath(path) in (file, *file.parents) for path in paths)
