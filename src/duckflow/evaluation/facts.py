"""Facts about the files that a request changed, found without running anything. Blocking."""

import ast
import json
import re
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable
from functools import partial
from pathlib import PurePosixPath
from typing import Literal

from duckflow.domain.errors import ToolError
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut, head_and_tail, one_line
from duckflow.domain.work.checks import CheckResult, settled
from duckflow.domain.work.objective import Evidence, Verification
from duckflow.safety.files.workspace import READ_CAP, Workspace
from duckflow.safety.policy.protected import is_secret

FactState = Literal["parses", "broken", "readable", "empty", "unread", "missing", "gone", "left"]
"""`gone` and `left`: files meant to be removed; `missing`: absent or unreadable; `unread`: not examined."""

FILE_NAME = lazy_regex(
    r"(?<![\w./@-])[\w-]+\.(?:py|js|ts|jsx|tsx|rs|go|c|h|cc|cpp|hpp|java|kt|cs|rb|php|sh|lua|swift|sql|html|css"
    r"|md|txt|json|toml|ya?ml)(?![\w-])",
    re.ASCII,
)
"""Name of a file in a sentence, without its folder."""

_CLAIM = lazy_regex(
    r"(?:作成|作り|書き|書き込み|書き込|保存し?|追加し?|用意し?|更新し?|作成し)ました"
    r"|\b(?:created|wrote|written|saved|added|made|updated|generated)\b",
    re.IGNORECASE,
)

MOST_FILES = 200
"""Largest number of files to examine. If there are more, the last changed ones are examined."""

_CONTENT = 6_000
_DETAIL = 300
_GOOD: Collection[FactState] = ("parses", "readable", "empty", "unread", "gone")


class Fact(Frozen):
    """State of one file. `content` is its current content, shortened if it is long."""

    path: str
    state: FactState
    detail: str = ""
    content: str = ""

    @property
    def good(self) -> bool:
        """True if no fault of the file can be found without running it."""
        return self.state in _GOOD

    @property
    def text(self) -> str:
        """The fact as evidence."""
        line = f"check of {self.path}: {self.detail}"
        return f"{line}\n{self.content}" if self.content else line


def check_files(
    workspace: Workspace, paths: Iterable[str], removed: Collection[str] = ()
) -> tuple[Fact, ...]:
    """Return a fact for each file that a request changed; those in `removed` are meant to be gone."""
    newest = tuple(dict.fromkeys(paths))[-MOST_FILES:]
    return tuple(_check(workspace, path, to_be_gone=path in removed) for path in newest)


def claimed_files(reply: str) -> frozenset[str]:
    """Return the files of which a reply says that they were written."""
    return frozenset(FILE_NAME.findall(reply)) if _CLAIM.search(reply) else frozenset()


def as_evidence(seen: Iterable[Fact | CheckResult], first: int) -> tuple[Evidence, ...]:
    """Return facts and check results as evidence, numbered from `first` on. Checks not run prove nothing."""
    return tuple(
        Evidence(
            evidence_id=f"e{number}",
            text=one.text,
            kind="check",
            current=isinstance(one, Fact) or one.state != "not_run",
            supports="change" if one.good else "nothing",
        )
        for number, one in enumerate(seen, start=first)
    )


def verification_of(
    facts: Iterable[Fact],
    command_passed: bool | None = None,  # noqa: FBT001 - it has three values
    results: Iterable[CheckResult] = (),
) -> Verification:
    """Combine all results into one. `command_passed` is that of the verifying command, None without one.

    If that command passed, a file that does not parse is no failure: it may be broken on purpose, for a test.
    """
    ran = settled(results)
    if command_passed is False or ran is False:
        return "failed"
    bad = {fact.state for fact in facts if not fact.good}
    if bad - ({"broken"} if command_passed else set()):
        return "failed"
    return "passed" if command_passed or ran else "none"


def _check(workspace: Workspace, path: str, *, to_be_gone: bool) -> Fact:
    fact = partial(Fact, path=path)
    try:
        status = workspace.status(path)
        if status is None and to_be_gone:
            return fact(state="gone", detail="removed, as intended")
        if status is None:
            return fact(state="missing", detail="does not exist")
        if to_be_gone:
            return fact(state="left", detail="still there, though it was to be removed")
        if status.kind != "file":
            return fact(state="missing", detail=f"there is a {status.kind}, not a file")
        if status.size > READ_CAP:
            return fact(state="unread", detail=f"there, {status.size} bytes, not looked into")
        found = look_at(path, workspace.read_bytes(path))
    except ToolError as error:
        return fact(state="missing", detail=cut(f"can't be read: {error}", _DETAIL))
    return replace(found, content="") if is_secret(path) else found


def parsed_here(path: str) -> bool:
    """Return whether Duckflow itself can parse this kind of file."""
    return PurePosixPath(path).suffix.lower() in _PARSERS


def look_at(path: str, data: bytes) -> Fact:
    """Return the facts about a file with this content."""
    if not data.strip():
        return Fact(path=path, state="empty", detail="there, empty")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Fact(path=path, state="unread", detail=f"there, {len(data)} bytes, not UTF-8 text")
    lines = f"there, {len(text.splitlines())} lines"
    found = Fact(path=path, state="readable", detail=lines, content=head_and_tail(text.rstrip(), _CONTENT))
    language, parse = _PARSERS.get(PurePosixPath(path).suffix.lower(), ("", None))
    if parse is None:
        return found
    try:
        parsed = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        wrong = cut(f"{lines}, does not parse as {language}: {_reason(error)}", _DETAIL)
        return replace(found, state="broken", detail=wrong)
    note = parsed if isinstance(parsed, str) else ""
    return replace(found, state="parses", detail=f"{lines}, parses as {language}{note}")


def _reason(error: Exception) -> str:
    if isinstance(error, SyntaxError):
        return f"line {error.lineno}: {error.msg}"
    return " ".join(str(error).split()) or "it is nested too deeply"


def _parse_python(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings about questionable code must not reach the user here
        ast.parse(text)


def _parse_json(text: str) -> str:
    try:
        json.loads(text)
    except ValueError:
        json.loads(without_comments(text))
        return " with comments"
    return ""


_PARSERS: dict[str, tuple[str, Callable[[str], object]]] = {
    ".py": ("Python", _parse_python),
    ".pyi": ("Python", _parse_python),
    ".json": ("JSON", _parse_json),
    ".ipynb": ("JSON", _parse_json),
    ".toml": ("TOML", tomllib.loads),
}
"""Language and parser by suffix. A parser raises an error if a file does not parse."""


# Possessive repeats and open ends: even with unclosed strings or comments these patterns stay fast.
_STRING = r'"(?:[^"\\\n]++|\\.)*+"?'
_TOKEN = lazy_regex(rf"{_STRING}|//[^\n]*+|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING = lazy_regex(rf"({_STRING})|,(?=\s*+[\]}}])", re.DOTALL)


def without_comments(text: str) -> str:
    """Remove comments, and commas before closing brackets, but not inside strings."""
    bare = _TOKEN.sub(lambda match: match[0] if match[0].startswith('"') else " ", text)
    return _TRAILING.sub(lambda match: match[1] or "", bare)


MOST_LINES = 5

CANT_START = (126, 127)
"""Exit codes of a shell if a program is missing or not executable."""

_LINE = 200
_TELLING = lazy_regex(
    r"(?:^|[\s\[(])(?:FAIL|FAILED|ERROR|Error|not ok|error|panicked|✗|✕|✘|×)(?=[\s:\])(]|\b)"
)
_NO_PYTEST = lazy_regex(r"(?:\S*/)?python[\d.]*: No module named pytest")
_COUNT = lazy_regex(r"^[=\s-]*\d+ (?:failed|passed|errors?)\b")


def runner_is_missing(exit_code: int | None, output: str) -> bool:
    """Return whether tests could not start. Only the last line of the output tells if pytest is missing."""
    last = output.rstrip().rpartition("\n")[2]
    return exit_code in CANT_START or (exit_code == 1 and _NO_PYTEST.fullmatch(last) is not None)


def telling_lines(output: str) -> list[str]:
    """Return all lines that name failures."""
    lines = (one_line(line, _LINE) for line in output.splitlines())
    return [line for line in lines if _TELLING.search(line) and not _COUNT.match(line)]


def failing_lines(output: str) -> tuple[str, ...]:
    """Return the first lines that name failures; if there are none, the last lines."""
    lines = [one_line(line, _LINE) for line in output.splitlines() if line.strip()]
    telling = telling_lines(output)
    named = [line for line in telling if any(sign in line for sign in ("FAILED", "--- FAIL", "not ok"))]
    return tuple(dict.fromkeys(named or telling or lines[-MOST_LINES:]))[:MOST_LINES]
