"""Definitions in a text, found by its headings or tables, or by a grammar in a separate process."""

import json
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.searching.ripgrep import run_capped

_FENCE = lazy_regex(r" {0,3}(`{3,}|~{3,})")
_HEADING = lazy_regex(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_UNDERLINE = lazy_regex(r" {0,3}(=+|-+)[ \t]*")
_NO_PARAGRAPH = lazy_regex(r"\s*$| {4}|\t| {0,3}(?:[>|]|[-*+][ \t]|\d+[.)][ \t])")
_TABLE = lazy_regex(r"[ \t]*\[{1,2}[^\[\]=]+\]{1,2}[ \t]*(?:#.*)?")
_KEY = lazy_regex(r"[ \t]*[\w.\"'-][^=#\[\]]*=")
_STRING = lazy_regex(r'"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*')
_QUOTES = ('"""', "'''")

LEVELS = 6
"""Number of section levels."""


class Section(NamedTuple):
    """First line of a section: its number, from 1, its depth, and its text."""

    line: int
    depth: int
    text: str


def markdown_headings(lines: list[str]) -> Iterator[Section]:
    """Yield all headings, in both forms, except those in code and in the front matter."""
    fence, paragraph = "", False
    top = _front_matter(lines)
    for number, line in enumerate(lines[top:], top + 1):
        mark = _FENCE.match(line)
        if fence:
            closed = mark and mark[1].startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if closed else fence
        elif mark:
            fence, paragraph = mark[1], False
        elif heading := _HEADING.match(line):
            yield Section(number, len(heading[1]) - 1, line.strip())
            paragraph = False
        elif paragraph and (under := _UNDERLINE.fullmatch(line)):
            yield Section(number - 1, int(under[1][0] == "-"), lines[number - 2].strip())
            paragraph = False
        else:
            paragraph = not _NO_PARAGRAPH.match(line)


def _front_matter(lines: list[str]) -> int:
    """Return the number of lines of the front matter, the block of settings at the top."""
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((n for n, line in enumerate(lines[1:200], 2) if line.rstrip() in ("---", "...")), 0)


def toml_tables(lines: list[str]) -> Iterator[Section]:
    """Yield all tables, and the keys before the first one."""
    quote, in_table, nested = "", False, 0
    for number, line in enumerate(lines, 1):
        if quote:
            quote = "" if quote in line else quote
            continue
        if not nested and _TABLE.fullmatch(line):
            in_table = True
            yield Section(number, 0, line.strip())
            continue
        if not in_table and not nested and _KEY.match(line):
            yield Section(number, 0, line.strip())
        quote = next((mark for mark in _QUOTES if line.count(mark) % 2), "")
        bare = _STRING.sub("", line)
        nested = max(nested + bare.count("[") - bare.count("]"), 0)


_MARKDOWN = (".md", ".markdown", ".mdx")
_PROGRAM = Path(__file__).with_name("definition_finder.py")


class Definition(NamedTuple):
    """First and last line of a definition, from 1, its depth, and its signature."""

    first: int
    last: int
    depth: int
    text: str


class FoundDefinitions(NamedTuple):
    """Definitions, and the number of further ones. `damaged` is the first line that could not be parsed."""

    rows: list[Definition]
    more: int = 0
    complete: bool = True
    """False if there may be more than `more` says."""
    damaged: int | None = None


async def find_definitions(path: str, text: str, most: int) -> FoundDefinitions:
    """Find up to `most` definitions in a file.

    Raise ToolError if its type is unknown or its grammar gives up.
    """
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in _MARKDOWN:
        return await run_in_thread(_by_sections, markdown_headings, text, most)
    if suffix == ".toml":
        return await run_in_thread(_by_sections, toml_tables, text, most)
    if language := languages().get(suffix):
        return await _by_grammar(path, text, language, most)
    raise ToolError(f"{path}: there is no outline of this type of file; use file_ops.read_file.")


async def _by_grammar(path: str, text: str, language: str, most: int) -> FoundDefinitions:
    asked = {"text": text, "language": language, "rules": rules_of(language), "most": most}
    try:
        output = await run_capped([sys.executable, "-I", str(_PROGRAM)], given=json.dumps(asked).encode())
        answer: dict[str, Any] = json.loads(output.data)
    except (ToolError, ValueError) as exc:  # it took too long, or the parser crashed
        raise ToolError(f"{path}: can't be parsed; use file_ops.read_file.") from exc
    answer["rows"] = [Definition(*row) for row in answer["rows"]]
    return FoundDefinitions(**answer)


def _by_sections(find: Callable[[list[str]], Iterator[Section]], text: str, most: int) -> FoundDefinitions:
    """Return each section with its last line: the one before the next section that is not inside it."""
    rows: list[Definition] = []
    lines = text.removesuffix("\n").split("\n")
    begins = [len(lines) + 1] * LEVELS
    for line, depth, said in reversed(list(find(lines))):
        rows.append(Definition(line, min(begins[: depth + 1]) - 1, depth, said))
        begins[depth] = line
    rows.reverse()
    return FoundDefinitions(rows[:most], more=len(rows[most:]))


ROLES = ("space", "type", "function", "value", "hidden")
"""Roles of definitions, explained in grammars.toml."""

Rules = dict[str, list[dict[str, Any]]]
"""Rules that find nodes in a syntax tree, by role."""


@cache
def languages() -> dict[str, str]:
    """Return the language of each suffix."""
    return {suffix: name for name, grammar in _table().items() for suffix in grammar["suffixes"]}


def rules_of(language: str) -> Rules:
    """Return the rules of a language, including those of its base."""
    own = _table()[language]
    taken: Rules = rules_of(own["base"]) if "base" in own else {}
    return {role: [*taken.get(role, ()), *map(_rule, own.get(role, ()))] for role in ROLES}


def _rule(given: str | dict[str, Any]) -> dict[str, Any]:
    return {"kind": given} if isinstance(given, str) else given


@cache
def _table() -> dict[str, dict[str, Any]]:
    data = pkgutil.get_data("duckflow.tools.outline", "grammars.toml")
    assert data is not None
    return tomllib.loads(data.decode())
