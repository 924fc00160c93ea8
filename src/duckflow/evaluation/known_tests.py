"""Recognizes tests that the model ran: passed tests need not run again, others run the same way (J10). Pure.

A run counts only if it is unambiguous: one pytest call for these files, a last line that reports success, no
file changed since, and otherwise only commands that read.
"""

import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from duckflow.domain.patterns import lazy_regex

_PASSED = lazy_regex(r"^[= ]*\d+ passed(?:, \d+ (?:skipped|warnings?|xfailed|xpassed))* in [\d.:]+s?.*$")
_COUNTS = lazy_regex(r"\b\d+ (?:passed|failed|errors?)\b.* in \d")
_CALL = lazy_regex(
    r"(?P<settings>(?:\w+=\S* )*)(?:(?:uv run|timeout \S+) )?(?P<folder>\S*/)?(?P<name>pytest|python[\d.]*)"
    r"(?P<flags>(?: -[BIPsu]| -[XW] ?\S+)*)(?P<module> -m pytest)?(?: (?P<arguments>.*))?"
)

_SETTING = lazy_regex(r"\w+=")
_QUOTED = lazy_regex(r"`([^`\n]*\bpytest\b[^`\n]*)`|^[ $]*([^`\n]* -m pytest[^`\n]*)$", re.MULTILINE)
_NAME = lazy_regex(r"\$(?:(\w+)|\{(\w+)\})")
_UNRESOLVED = lazy_regex(r"[$`*?~]")
_OPERATOR = lazy_regex(r"[();<>|&]+")
_BETWEEN = ("&&", "||", ";", "|")
_READS = lazy_regex(r"(?:(?:ls|true|wc)\b|git (?:diff|log|status)\b).*|")
_FILTERS = lazy_regex(r"(?:tail|head|cat)\b.*|")
"""Commands allowed beside the tests: commands that print no test summary, and filters of the output."""

_FLAGS = frozenset(
    ("-q", "-qq", "-v", "-vv", "-x", "-s", "-l", "--exitfirst", "--quiet", "--verbose", "--no-header")
)
_FLAGS_WITH_VALUE = ("--tb", "--color", "--durations", "--maxfail", "-r", "-n")
"""pytest options that skip no tests. Those in the second group take a value, in the same or the next word."""


_TEST_COMMAND = lazy_regex(
    r"\b(?:pytest|unittest|jest|vitest|phpunit|rspec|ctest|tox|nox|node --test"
    r"|(?:go|cargo|dotnet|mix|mvn|gradlew?|make|npm|npm run|yarn|pnpm|bun|deno)(?: -\S+)* (?:test|check))\b"
)


def is_test_command(command: str) -> bool:
    """Return whether a command runs tests."""
    return _TEST_COMMAND.search(command) is not None


class KnownRun(NamedTuple):
    """Command that succeeded with the files as they are now."""

    command: str
    output: str
    evidence_id: str


def passed_in(test: str, runs: Iterable[KnownRun]) -> str:
    """Return the evidence id of a run in which all tests of this file passed, or ""."""
    found = (run.evidence_id for run in runs if _covers(test, run.command) and _all_passed(run.output))
    return next(found, "")


def passed_whole(command: str, runs: Iterable[KnownRun]) -> str:
    """Return the evidence id of a run that passed and ran the same tests as this whole pytest run, or ""."""
    if _selected_by(command) != []:
        return ""
    found = (run.evidence_id for run in runs if _selected_by(run.command) == [] and _all_passed(run.output))
    return next(found, "")


def _all_passed(output: str) -> bool:
    summaries = [line.strip() for line in output.splitlines() if _COUNTS.search(line)]
    return len(summaries) == 1 and _PASSED.match(summaries[0]) is not None


def _covers(test: str, command: str) -> bool:
    paths = _selected_by(command)
    file = PurePosixPath(test)
    return any(PurePosixPath(path) in (file, *file.parents) for path in paths or ())


def _selected_by(command: str) -> list[str] | None:
    """Return the paths given to the only pytest call of a command. None if that is not all that it runs."""
    arguments: list[list[str]] = []
    for before, words in _parts(command):
        part = " ".join(words)
        call = _CALL.fullmatch(part)
        if any(map(_OPERATOR.fullmatch, words)):
            return None
        if call and _runs_pytest(call):
            arguments.append((call["arguments"] or "").split())
        elif not (_FILTERS if before == "|" else _READS).fullmatch(part):
            return None
    return _paths_of(arguments[0]) if len(arguments) == 1 else None


def python_used(commands: Sequence[str], request: str = "") -> str:
    """Return the words that start Python in the request, the last test run, or the last Python command."""
    named = [found[1] or found[2] for found in _QUOTED.finditer(request)]
    used = (_python_in(one, tests=tests) for tests in (True, False) for one in (*named, *reversed(commands)))
    return next(filter(None, used), "")


def _python_in(command: str, *, tests: bool) -> str:
    """Return the words that start Python last in a command. With `tests`, only if they run pytest."""
    variables: dict[str, str] = {}
    exported: dict[str, str] = {}
    used = ""
    for _, words in _parts(command):
        filled = [
            _NAME.sub(lambda found: variables.get(found[1] or found[2], found[0]), one) for one in words
        ]
        exports = filled[:1] == ["export"]
        if all(map(_SETTING.match, filled[exports:])):
            values = dict(word.split("=", 1) for word in filled[exports:])
            variables.update(values)
            exported.update(values if exports else {})
            continue
        call = _CALL.fullmatch(" ".join(filled))
        if (
            call is None
            or not call["folder"]
            or not (_runs_pytest(call) if tests else call["name"] != "pytest")
        ):
            continue
        own = dict(word.split("=", 1) for word in call["settings"].split())
        name, flags = ("python", "") if call["name"] == "pytest" else (call["name"], call["flags"])
        settings = (f"{key}={value}" for key, value in (exported | own).items())
        start = [*settings, f"{call['folder']}{name}", *flags.split()]
        if not any(map(_UNRESOLVED.search, start)):
            used = " ".join(map(shlex.quote, start))
    return used


def _parts(command: str) -> list[tuple[str, list[str]]]:
    """Split a command line into commands, each with the operator before it. Empty for an unclosed quote."""
    text = command.strip().replace("2>&1", " ").replace("\n", " ; ")
    lexer = shlex.shlex(text, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[tuple[str, list[str]]] = [("", [])]
    try:
        for word in lexer:
            if word in _BETWEEN:
                parts.append((word, []))
            else:
                parts[-1][1].append(word)
    except ValueError:
        return []
    return parts


def _runs_pytest(call: re.Match[str]) -> bool:
    return call["name"] == "pytest" or call["module"] is not None


def _paths_of(arguments: Iterable[str]) -> list[str] | None:
    """Return the paths among the arguments of pytest, None if an option skips tests."""
    paths: list[str] = []
    rest = iter(arguments)
    for word in rest:
        if not word.startswith("-"):
            paths.append(word)
        elif word == "-p":
            if next(rest, "") != "no:cacheprovider":
                return None
        elif word not in _FLAGS and not word.startswith(_FLAGS_WITH_VALUE):
            return None
        elif word in _FLAGS_WITH_VALUE:
            next(rest, None)
    return paths
