"""Small program that finds the definitions in a source text. JSON in, JSON out.

It runs in a separate process, because a grammar can take very long for an unusual text, and some texts crash
the process. It imports almost nothing of Duckflow.
"""

import json
import resource
import sys
from contextlib import suppress
from typing import Any, NamedTuple

from ast_grep_py import SgNode, SgRoot

from duckflow.domain.patterns import lazy_regex

SECONDS, MEMORY = 15, 2_000_000_000
MATCHES = 5000
"""Largest number of definitions examined. On a line of a million characters, each takes a millisecond."""

LETTERS = 400
"""Longest signature, in characters."""

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


class Scope(NamedTuple):
    """Enclosing definition: its end, its role, and the depth of its contents."""

    end: int
    role: str
    depth: int


def find_definitions(text: str, language: str, rules: dict[str, list[Any]], most: int) -> dict[str, Any]:
    """Return rows in order, the number of others (at least, if not complete), and the first damaged line."""
    root = SgRoot(text, language).root()
    nodes = root.find_all(any=[rule for listed in rules.values() for rule in listed])
    rows: list[tuple[int, int, int, str]] = []
    more = 0
    above = [Scope(len(text) + 1, "space", 0)]
    for node in nodes[:MATCHES]:
        span = node.range()
        while above[-1].end <= span.start.index:
            above.pop()
        role = _role(node, rules)
        if role == "value" and above[-1].role != "space":
            continue
        depth = above[-1].depth
        if role != "hidden" and len(rows) < most:
            rows.append(_row(node, text, role, depth))
        more += role != "hidden"
        depth += role != "hidden"
        above.append(Scope(span.end.index, role, depth))
    complete = len(nodes) <= MATCHES
    return {"rows": rows, "more": more - len(rows), "complete": complete, "damaged": _first_damage(root)}


def _role(node: SgNode, rules: dict[str, list[Any]]) -> str:
    kind = node.kind()
    fitting = ((role, rule) for role, listed in rules.items() for rule in listed if rule["kind"] == kind)
    candidates = list(fitting)
    if len(candidates) > 1:
        candidates = [(role, rule) for role, rule in candidates if node.matches(**rule)]
    role = candidates[0][0]
    return "function" if role == "value" and _valued_body(node) else role


def _row(node: SgNode, text: str, role: str, depth: int) -> tuple[int, int, int, str]:
    """Return a definition's first and last line, from 1, its depth and its signature."""
    begin = _begin(node).range().start
    whole = node.range()
    last = whole.end.line + (whole.end.column > 0)
    return begin.line + 1, max(last, begin.line + 1), depth, _signature(node, text, role, begin.index)


def _signature(node: SgNode, text: str, role: str, start: int) -> str:
    """Return the text before the body. Without a body, return the first line, or all of a function."""
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
    """Return the body of a definition, and the end of the text before it, not counting comments."""
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
    """Return the body of the function that is assigned, if any."""
    value = node.field("value") or node.field("right")
    return value.field("body") if value else None


def _first_damage(root: SgNode) -> int | None:
    """Return the first line with an error or a missing token. Missing tokens are in the tree, but empty."""
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
    given = json.loads(sys.stdin.buffer.read())
    found = find_definitions(given["text"], given["language"], given["rules"], given["most"])
    sys.stdout.buffer.write(json.dumps(found).encode())
