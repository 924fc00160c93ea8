"""Markdown and code as trees for the web page: names of elements and texts, never markup.

The page makes elements only of the names in its own list, so nothing that a model writes becomes markup. Both
parsers are those of the terminal (markdown-it-py and Pygments), so the page needs no script from elsewhere.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from duckflow.domain.patterns import lazy_regex
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.markdown import markdown_parser

if TYPE_CHECKING:
    from markdown_it.token import Token
    from pygments.lexer import Lexer

Node = Any
"""A text, or a list: the name of an element, its attributes, and its children."""

_MAX_COLOURED = 200_000
"""Longest code, in characters, that gets colours. Lexers take too long for more."""
_MAX_MARKDOWN = 200_000
"""Longest text, in characters, that is read as Markdown."""
_LINK = lazy_regex(r"(?:https?://|mailto:)\S+")
_TODO = lazy_regex(r"\[([ xX])\] ")
_WORD = lazy_regex(r"[\w+#.-]{1,30}")
_CLASSES = (
    ("Comment", "comment"),
    ("Keyword", "keyword"),
    ("Literal.String", "string"),
    ("Literal.Number", "number"),
    ("Name.Function", "name"),
    ("Name.Class", "name"),
    ("Name.Decorator", "name"),
    ("Name.Tag", "keyword"),
    ("Name.Attribute", "name"),
    ("Name.Builtin", "builtin"),
    ("Generic.Deleted", "old"),
    ("Generic.Inserted", "new"),
    ("Generic.Heading", "keyword"),
    ("Generic.Subheading", "keyword"),
)
"""Kinds of token, and the class that the page colours. All other tokens have the colour of text."""


def markdown_nodes(source: str) -> list[Node]:
    """Return Markdown as nodes."""
    if len(source) > _MAX_MARKDOWN:
        return [["p", {}, harmless(source)]]
    return _nested(markdown_parser().parse(harmless(source)))


def code_node(code: str, language: str = "", path: str = "") -> Node:
    """Return code as one node, in the colours of its language or of a file with this name."""
    word = _WORD.match(language.strip())
    shown = word[0] if word else ""
    return ["pre", {"language": shown}, *_coloured(code, _lexer(shown.casefold(), path))]


def _nested(tokens: Sequence["Token"]) -> list[Node]:
    """Return a flat list of tokens, some of which open and close an element, as a tree."""
    top: list[Node] = []
    open_lists = [top]
    for token in tokens:
        if token.nesting < 0:
            if len(open_lists) > 1:
                open_lists.pop()
        elif token.nesting > 0:
            children = _opened(token, open_lists[-1])
            open_lists.append(children)
        else:
            open_lists[-1].extend(_leaf(token))
    return top


def _opened(token: "Token", parent: list[Node]) -> list[Node]:
    if token.hidden:  # the paragraph of a tight list
        return parent
    attributes: dict[str, str] = {}
    name = token.tag
    if name == "a":
        address = str(token.attrGet("href") or "")
        name = "a" if _LINK.fullmatch(address) else "span"
        attributes = {"href": address} if name == "a" else {}
    elif name == "ol" and (start := token.attrGet("start")) is not None:
        attributes = {"start": str(start)}
    elif name in ("td", "th") and "right" in str(token.attrGet("style")):
        attributes = {"align": "right"}
    node: list[Node] = [name, attributes]
    parent.append(node)
    return node


def _leaf(token: "Token") -> Iterator[Node]:
    match token.type:
        case "inline":
            done = _TODO.match(token.content) if token.level > 1 else None
            nodes = [node for node in _nested(token.children or ()) if node]
            if done and isinstance(nodes[0], str):  # an entry with a checkbox
                nodes[0] = f"{'☐' if done[1] == ' ' else '☑'} {nodes[0][done.end() :]}"
            yield from nodes
        case "text" | "html_inline":
            yield token.content
        case "html_block":
            yield ["p", {}, token.content.rstrip("\n")]
        case "code_inline":
            yield ["code", {}, token.content]
        case "fence" | "code_block":
            yield code_node(token.content.rstrip("\n"), token.info)
        case "softbreak":
            yield "\n"
        case "hardbreak":
            yield ["br", {}]
        case "hr":
            yield ["hr", {}]
        case "image":  # nothing is loaded: the page shows what the picture is called
            yield f"🖼 {token.content}"
        case _:
            yield token.content


def _coloured(code: str, lexer: "Lexer | None") -> Iterator[Node]:
    if lexer is None or len(code) > _MAX_COLOURED:
        yield code
        return
    plain, last = "", ""
    for kind, value in lexer.get_tokens(code):
        name = _class_of(str(kind))
        if name != last and plain:
            yield _span(last, plain)
            plain = ""
        plain, last = plain + value, name
    yield _span(last, plain.removesuffix("\n") if not code.endswith("\n") else plain)


def _span(name: str, text: str) -> Node:
    return ["span", {"class": name}, text] if name else text


@cache
def _class_of(kind: str) -> str:
    named = kind.removeprefix("Token.")
    return next((name for beginning, name in _CLASSES if named.startswith(beginning)), "")


def _lexer(language: str, path: str) -> "Lexer | None":
    from pygments import lexers  # noqa: PLC0415 - takes time
    from pygments.util import ClassNotFound  # noqa: PLC0415 - as above

    known: Any = lexers  # its functions have no complete types

    try:
        if language:
            return known.get_lexer_by_name(language, stripnl=False, ensurenl=True)
        return known.get_lexer_for_filename(path, stripnl=False, ensurenl=True) if path else None
    except ClassNotFound:
        return None
