"""Tests that just ran: what a model's own command already showed is not run again (SPEC J10). Pure.

Only what leaves no doubt counts: one pytest for these files, of which nothing was deselected, whose own last
line says that all passed, with files that have not changed since.
"""

import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.domain.patterns import late

_PASSED = late(r"^[= ]*\d+ passed(?:, \d+ (?:skipped|warnings?|xfailed|xpassed))* in [\d.:]+s?.*$")
_COUNTS = late(r"\b\d+ (?:passed|failed|errors?)\b.* in \d")
_BETWEEN = ("&&", "|")
_FILTERS = ("tail", "head", "cat")
"""Programs behind a pipe that pass a part of the output on as it is."""

_FLAGS = frozenset(
    ("-q", "-qq", "-v", "-vv", "-x", "-s", "-l", "--exitfirst", "--quiet", "--verbose", "--no-header")
)
_FLAGS_WITH_VALUE = ("--tb", "--color", "--durations", "--maxfail", "-r", "-n")
"""Options of pytest that leave out no test; the second kind takes a value, in the same word or the next."""


class KnownRun(NamedTuple):
    """A command that succeeded with the files as they are now."""

    command: str
    output: str
    evidence_id: str


def passed_in(test: str, runs: Iterable[KnownRun]) -> str:
    """The id of a run in which all tests of this file passed; empty if there is none."""
    found = (run.evidence_id for run in runs if _covers(test, run.command) and _all_passed(run.output))
    return next(found, "")


def _all_passed(output: str) -> bool:
    """Whether there is one summary of pytest in the output, and it tells of no failure."""
    lines = [line.strip() for line in output.splitlines()]
    summaries = [line for line in lines if _COUNTS.search(line)]
    return len(summaries) == 1 and _PASSED.match(summaries[0]) is not None


def _covers(test: str, command: str) -> bool:
    """Whether the command runs all tests of this file, as far as its words tell without doubt."""
    try:
        lexer = shlex.shlex(command.replace("2>&1", " "), posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        words = list(lexer)
    except ValueError:
        return False
    if "\n" in command.strip() or any(_is_operator(word) and word not in _BETWEEN for word in words):
        return False
    parts = _parts(words)
    if any(before == "|" and part[:1] and part[0] not in _FILTERS for before, part in parts):
        return False
    if any(word == "cd" for _, part in parts for word in part[:1]):
        return False
    tests = [given for _, part in parts if (given := _arguments(part)) is not None]
    return len(tests) == 1 and _runs_all_of(test, tests[0])


def _parts(words: Sequence[str]) -> list[tuple[str, list[str]]]:
    """The simple commands, each with what stands before it."""
    parts: list[tuple[str, list[str]]] = [("", [])]
    for word in words:
        if word in _BETWEEN:
            parts.append((word, []))
        else:
            parts[-1][1].append(word)
    return parts


def _is_operator(word: str) -> bool:
    return bool(word) and all(letter in "();<>|&" for letter in word)


def _arguments(words: Sequence[str]) -> list[str] | None:
    """What follows `pytest` or `python -m pytest`; None if it is another command."""
    while words and "=" in words[0] and not words[0].startswith("-"):
        words = words[1:]
    words = words[2:] if list(words[:2]) == ["uv", "run"] else words
    if not words:
        return None
    program = PurePosixPath(words[0]).name
    if program == "pytest":
        return list(words[1:])
    if program.startswith("python") and list(words[1:3]) == ["-m", "pytest"]:
        return list(words[3:])
    return None


def _runs_all_of(test: str, arguments: Iterable[str]) -> bool:
    """Whether pytest with these arguments runs all tests of the file."""
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
