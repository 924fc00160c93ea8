"""Small program that reads a source text as JSON and prints its outline.

It runs in a separate process, because a grammar can take very long for an unusual text, and some texts crash
the process. It imports almost nothing of Duckflow.
"""

import json
import re
import resource
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from typing import Any, NamedTuple

from ast_grep_py import SgNode, SgRoot

from duckflow.domain.patterns import lazy_regex
from duckflow.domain.text import cut

SECONDS, MEMORY = 15, 2_000_000_000
MATCHES = 5000
"""Largest number of definitions examined. On a line of a million characters, each takes a millisecond."""

LETTERS = 400
"""Longest text of a definition that is examined for its signature, in characters."""

WIDTH = 120
_DEEPEST = 12
_BODIES = (
    *("{", "accessor_list", "arrow_expression_clause", "block", "block_start", "body_statement"),
    *("class_body", "class_declarations", "compound_statement", "computed_property", "do_block"),
    *("enum_body", "enum_class_body", "enum_variant_list", "enumerator_list", "extension_body"),
    *("field_declaration_list", "function_body", "instance_declarations", "keyframe_block_list"),
    "protocol_body",
)
_COMMENTS = ("comment", "line_comment", "block_comment", "multiline_comment")
_ABOVE = (*_COMMENTS, "annotation", "marker_annotation", "attribute_list", "attribute", "decorator")
_WORDS = lazy_regex(r"[\w\s]*")
_BROKEN_LINE = lazy_regex(r"(?<=[(\[])\s*\n\s*|,?\s*\n\s*(?=[)\]])")
_LOOSE_END = lazy_regex(r"(?:\s*(?:\{|=>|=|:|;|,|\bdo\b|\bwhere\b|\bend\b))+$")
_LOOSE_VALUE_END = lazy_regex(r"(?:[\s;,]|(?<![=\s]):)+$")

_QUOTED = lazy_regex(r"^ {0,3}>.*", re.MULTILINE)
_LEVEL = lazy_regex(r"\w+_h(\d)_\w+")
_TABLE = lazy_regex(r"\s*\[.+\]\s*")
_STRING = lazy_regex(r'"{3}[\s\S]*?"{3}|\'{3}[\s\S]*?\'{3}|"(?:\\.|[^"\\\n])*"|\'[^\'\n]*\'|#.*')
"""A string or a comment of TOML."""


class Scope(NamedTuple):
    """Enclosing definition: its end, its role, and the depth of its contents."""

    end: int
    role: str
    depth: int


class Definition(NamedTuple):
    """First and last line of a definition, from 1, its depth, and its signature."""

    first: int
    last: int
    depth: int
    text: str


def outline(text: str, language: str, rules: dict[str, list[Any]], most: int) -> str:
    """Return the outline: notes in brackets, and a line for each definition, up to `most`."""
    count = len(text.removesuffix("\n").split("\n"))
    notes = [f"outline of {count} lines"]
    complete = True
    if language == "toml":
        found = _sections(_toml_tables(text), count)
    elif language == "markdown":
        found = _sections(_headings(text, rules["space"]), count)
    else:
        root = SgRoot(text, language).root()
        nodes = root.find_all(any=[rule for listed in rules.values() for rule in listed])
        complete = len(nodes) <= MATCHES
        found = (_definition(text, *one) for one in _shown(nodes[:MATCHES], rules, len(text)))
        if damaged := _first_damage(root):
            notes.append(f"line {damaged} can't be parsed, something may be missing")
    lines = [_line(one) for one in islice(found, most)]
    if not lines:
        notes.append("nothing is defined here")
    more = sum(1 for _ in found)
    if more or not complete:
        lines.append(f"… {more}{'' if complete else ' or more'} are left out")
    return "\n".join([f"({'; '.join(notes)})", *lines])


def _line(one: Definition) -> str:
    place = f"{one.first}-{one.last}" if one.last > one.first else f"{one.first}"
    return f"{place}: {'  ' * min(one.depth, _DEEPEST)}{cut(one.text, WIDTH)}"


def _sections(found: Iterable[tuple[int, int, str]], end: int) -> Iterator[Definition]:
    """Return each section with its last line, directly before the next section that is not inside it."""
    rows: list[Definition] = []
    begins = [end + 1] * 6
    for line, depth, said in reversed(list(found)):
        rows.append(Definition(line, min(begins[: depth + 1]) - 1, depth, said))
        begins[depth] = line
    return reversed(rows)


def _headings(text: str, rules: list[Any]) -> Iterator[tuple[int, int, str]]:
    """Yield the line, depth and text of the headings of a Markdown text."""
    text = _QUOTED.sub("", text)  # too many nested quotes crash the parser
    for heading in SgRoot(text, "markdown").root().find_all(any=rules):
        level = next(found for child in heading.children() if (found := _LEVEL.fullmatch(child.kind())))
        yield heading.range().start.line + 1, int(level[1]) - 1, heading.text().strip().partition("\n")[0]


def _toml_tables(text: str) -> Iterator[tuple[int, int, str]]:
    """Yield the line, depth and text of all tables, and of the keys before the first table."""
    bare = _STRING.sub(lambda found: "x" * (found[0][0] != "#") + "\n" * found[0].count("\n"), text)
    lines = text.split("\n")
    in_table, nested = False, 0
    for number, line in enumerate(bare.split("\n"), 1):
        table = not nested and _TABLE.fullmatch(line) is not None
        in_table = in_table or table
        if table or (not nested and not in_table and "=" in line):
            yield number, 0, lines[number - 1].strip()
        if not table:
            nested = max(nested + line.count("[") - line.count("]"), 0)


def _shown(
    nodes: Iterable[SgNode], rules: dict[str, list[Any]], end: int
) -> Iterator[tuple[SgNode, str, int]]:
    """Yield the definitions to show, in order, each with its role and depth."""
    above = [Scope(end + 1, "space", 0)]
    for node in nodes:
        span = node.range()
        while above[-1].end <= span.start.index:
            above.pop()
        role = _role(node, rules)
        if role == "value" and above[-1].role != "space":
            continue
        depth = above[-1].depth
        if role != "hidden":
            yield node, role, depth
        above.append(Scope(span.end.index, role, depth + (role != "hidden")))


def _role(node: SgNode, rules: dict[str, list[Any]]) -> str:
    kind = node.kind()
    fitting = ((role, rule) for role, listed in rules.items() for rule in listed if rule["kind"] == kind)
    candidates = list(fitting)
    if len(candidates) > 1:
        candidates = [(role, rule) for role, rule in candidates if node.matches(**rule)]
    role = candidates[0][0]
    return "function" if role == "value" and _valued_body(node) else role


def _definition(text: str, node: SgNode, role: str, depth: int) -> Definition:
    begin = _begin(node).range().start
    whole = node.range()
    last = whole.end.line + (whole.end.column > 0)
    said = _signature(node, text, role, begin.index)
    return Definition(begin.line + 1, max(last, begin.line + 1), depth, said)


def _signature(node: SgNode, text: str, role: str, start: int) -> str:
    """Return a definition's text before its body. Without a body, its first line, or all of a function."""
    whole = node.range().end.index
    body, end = (None, whole) if role == "value" else _split(node)
    said = text[start : min(end, start + 2 * LETTERS)]
    if body is None and role != "function":
        said = said.partition("\n")[0]
    said = _BROKEN_LINE.sub("", _words_before(text, start) + said)
    loose = _LOOSE_VALUE_END if role == "value" else _LOOSE_END
    said = loose.sub("", " ".join(said.split()))
    if body and node.kind() == "type_definition":  # in C the name comes last
        said = f"{said} {{…}} {text[body.range().end.index : whole].strip(' ;')}"
    return said[:LETTERS]


def _begin(node: SgNode) -> SgNode:
    """Return the node where the definition itself begins, after its annotations."""
    for child in node.children():
        inner = child.children() if child.kind() == "modifiers" else [child]
        own = [part for part in inner if part.kind() not in _ABOVE]
        if own:
            return own[0]
    return node


def _words_before(text: str, start: int) -> str:
    """Return the text before the definition on its line, if that is only words such as `export const`."""
    line = text.rfind("\n", max(start - 80, 0), start) + 1
    before = text[line:start] if line or start <= 80 else ""
    return before if _WORDS.fullmatch(before) else ""


def _split(node: SgNode) -> tuple[SgNode | None, int]:
    """Return a definition's body, or None, and the position where the text before the body ends."""
    value = node.field("value") or node.field("right")
    for holder in (node, node.field("type"), value):
        if holder is None:
            continue
        body = holder.field("body")
        place = body.range().start.index if body else -1
        end = holder.range().start.index
        for child in holder.children():
            span = child.range()
            if span.start.index == place or (body is None and child.kind() in _BODIES):
                return child, end
            if child.kind() not in _COMMENTS:
                end = span.end.index
    return None, node.range().end.index


def _valued_body(node: SgNode) -> SgNode | None:
    """Return the body of the function that a definition assigns, or None."""
    value = node.field("value") or node.field("right")
    return value.field("body") if value else None


def _first_damage(root: SgNode) -> int | None:
    """Return the first line with an error or a missing token (an empty node), or None."""
    errors = root.find_all(kind="ERROR")[:1]
    missing = [node for node in root.find_all(regex="^$")[:100] if node.is_leaf() and not node.is_named()]
    return min((node.range().start.line + 1 for node in (*errors, *missing[:1])), default=None)


def _limit() -> None:
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY))
    for which, most in limits:
        with suppress(ValueError, OSError):  # not every system has each of them
            resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    _limit()
    sys.stdout.buffer.write(outline(**json.load(sys.stdin)).encode())
