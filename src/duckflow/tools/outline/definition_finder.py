"""A small program: what a source text defines. JSON in, JSON out.

It runs in a process of its own: a grammar can be busy for long with an odd text, and some texts end the whole
process. It imports next to nothing of ours.
"""

import json
import resource
import sys
from contextlib import suppress
from typing import Any, NamedTuple

from ast_grep_py import SgNode, SgRoot

from duckflow.domain.patterns import late

SECONDS, MEMORY = 15, 2_000_000_000
MATCHES = 5000
"""Definitions looked at; where a line is a million characters long, each look takes a millisecond."""

LETTERS = 400
"""Characters of a signature."""

_BODIES = (
    *("{", "accessor_list", "arrow_expression_clause", "block", "block_start", "body_statement"),
    *("class_body", "class_declarations", "compound_statement", "computed_property", "do_block"),
    *("enum_body", "enum_class_body", "enum_variant_list", "enumerator_list", "extension_body"),
    *("field_declaration_list", "function_body", "instance_declarations", "keyframe_block_list"),
    "protocol_body",
)
_COMMENTS = ("comment", "line_comment", "block_comment", "multiline_comment")
_ABOVE = (*_COMMENTS, "annotation", "marker_annotation", "attribute_list", "attribute", "decorator")
_WORDS = late(r"[\w\s]*")
_BROKEN_LINE = late(r"(?<=[(\[])\s*\n\s*|,?\s*\n\s*(?=[)\]])")
_LOOSE_END = late(r"(?:\s*(?:\{|=>|=|:|;|,|\bdo\b|\bwhere\b|\bend\b))+$")
_LOOSE_VALUE_END = late(r"(?:[\s;,]|(?<![=\s]):)+$")


class Scope(NamedTuple):
    """What encloses a definition: where it ends, what it is, how deep that which is in it stands."""

    end: int
    role: str
    depth: int


def find_definitions(text: str, language: str, rules: dict[str, list[Any]], most: int) -> dict[str, Any]:
    """Rows in order, how many more there are (at least, if not complete), the first line with an error."""
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
    """One definition: its first and last line, from 1, its depth, its signature."""
    begin = _begin(node).range().start
    whole = node.range()
    last = whole.end.line + (whole.end.column > 0)
    return begin.line + 1, max(last, begin.line + 1), depth, _signature(node, text, role, begin.index)


def _signature(node: SgNode, text: str, role: str, start: int) -> str:
    """All before the body; of what has none, the first line, or of a function the whole."""
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
    """Where the definition itself begins, after the annotations on it."""
    for child in node.children():
        inner = child.children() if child.kind() == "modifiers" else [child]
        own = [part for part in inner if part.kind() not in _ABOVE]
        if own:
            return own[0]
    return node


def _words_before(text: str, start: int) -> str:
    """What stands before it on its line, where that is only words such as `export const`."""
    line = text.rfind("\n", max(start - 80, 0), start) + 1
    before = text[line:start] if line or start <= 80 else ""
    return before if _WORDS.fullmatch(before) else ""


def _split(node: SgNode) -> tuple[SgNode | None, int]:
    """The body of a definition, and where the text before it ends, comments aside."""
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
    """The body of the function that is assigned, if one is."""
    value = node.field("value") or node.field("right")
    return value.field("body") if value else None


def _first_damage(root: SgNode) -> int | None:
    """The first line with an error in it, or with something missing: a token that is there and is empty."""
    errors = root.find_all(kind="ERROR")[:1]
    missing = [node for node in root.find_all(regex="^$")[:100] if node.is_leaf() and not node.is_named()]
    return min((node.range().start.line + 1 for node in (*errors, *missing[:1])), default=None)


def _limit() -> None:
    limits = ((resource.RLIMIT_CORE, 0), (resource.RLIMIT_CPU, SECONDS), (resource.RLIMIT_AS, MEMORY))
    for which, most in limits:
        with suppress(ValueError, OSError):  # not every system has each
            resource.setrlimit(which, (most, most))


if __name__ == "__main__":
    _limit()
    given = json.loads(sys.stdin.buffer.read())
    found = find_definitions(given["text"], given["language"], given["rules"], given["most"])
    sys.stdout.buffer.write(json.dumps(found).encode())
