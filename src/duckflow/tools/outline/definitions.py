"""Definitions in a text, found by its sections, or by a grammar in a separate process."""

import json
import pkgutil
import sys
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from duckflow.domain.errors import ToolError
from duckflow.safety.uncancelled import run_in_thread
from duckflow.tools.outline.sections import LEVELS, Section, markdown_headings, toml_tables
from duckflow.tools.searching.ripgrep import run_capped

Finder = Callable[[list[str]], Iterator[Section]]
"""Finds the sections in the lines of a text."""

_SECTIONS: dict[str, Finder] = {
    ".md": markdown_headings,
    ".markdown": markdown_headings,
    ".mdx": markdown_headings,
    ".toml": toml_tables,
}
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
    if sections := _SECTIONS.get(suffix):
        return await run_in_thread(_by_sections, sections, text, most)
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


def _by_sections(find: Finder, text: str, most: int) -> FoundDefinitions:
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
