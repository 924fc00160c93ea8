"""Markdown drawn as lines for a terminal, with Japanese line breaking and coloured code."""

import io
import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from duckflow.domain.patterns import lazy_regex
from duckflow.ui.output.escaping import harmless
from duckflow.ui.output.text_width import wrap
from duckflow.ui.output.writer import code_of

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token
    from rich.console import Console

Style = Literal["strong", "em", "s", "code", "link", "heading"]
_CODES: dict[Style, str] = {"strong": "1", "em": "3", "s": "9", "code": "{}", "link": "4", "heading": "1;{}"}
"""Terminal codes of the styles. The slot is filled with a colour."""
_OPEN, _CLOSE = 0x10FF00, 0x10FF80
"""First characters that mark the start and the end of a style. They have no width, and are replaced last."""
_MARKS = lazy_regex("[\U0010ff00-\U0010ffff]")
_DUNDER = lazy_regex(r"__[a-z0-9]+(?:_[a-z0-9]+)*__")
"""Names such as `__init__`, which Markdown would show in bold and without their underscores."""
_INDENT = "  "


def render_text(source: str, columns: int, *, coloured: bool) -> str:
    """Return Markdown as lines for the terminal."""
    tokens = markdown_parser().parse(_MARKS.sub("\ufffd", harmless(source)))
    return "\n".join(_Drawing(columns, coloured=coloured).draw(tokens))


def render_code(source: str, language: str, *, coloured: bool) -> str:
    """Return code in the colours of its language. Lines are not wrapped, so that they can be copied."""
    code = harmless(source).expandtabs(4)
    if coloured and language:
        from rich.syntax import Syntax  # noqa: PLC0415 - takes time, and only a reply with code needs it

        console = _console(100_000, coloured=True)
        with console.capture() as drawn:
            shown = Syntax(code, language, theme="ansi_dark", background_color="default").highlight(code)
            console.print(shown, soft_wrap=True, end="")
        code = drawn.get().rstrip("\n")
    return "\n".join(_INDENT + line if line else "" for line in code.split("\n"))


@cache
def markdown_parser() -> "MarkdownIt":
    """Return the parser for replies, for the terminal and the web view."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - as above

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    parser.inline.ruler.before("emphasis", "dunder", _keep_dunder)
    return parser


def _keep_dunder(state: "StateInline", silent: bool) -> bool:  # noqa: FBT001 - the parser calls it so
    name = _DUNDER.match(state.src, state.pos)
    if name is None:
        return False
    if not silent:
        state.pending += name[0]
    state.pos = name.end()
    return True


def _console(columns: int, *, coloured: bool) -> "Console":
    from rich.console import Console  # noqa: PLC0415 - as above

    return Console(
        file=io.StringIO(),
        width=columns,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        no_color=not coloured,
        highlight=False,
        markup=False,
        emoji=False,
    )


class _Drawing:
    """Draws tokens in order. Lists and quotes put their sign before the lines inside them."""

    def __init__(self, columns: int, *, coloured: bool) -> None:
        self._columns = columns
        self._coloured = coloured
        self._before: list[str] = []
        self._sign: str | None = None
        self._counts: list[int | None] = []
        self._gap = False

    def draw(self, tokens: Sequence["Token"]) -> Iterator[str]:
        place = 0
        while place < len(tokens):
            if tokens[place].type == "table_open":
                end = next(at for at in range(place, len(tokens)) if tokens[at].type == "table_close")
                yield from self._placed(_table(tokens[place:end], self._room, coloured=self._coloured))
                place, self._gap = end, not self._counts
            else:
                yield from self._draw(tokens[place], tokens[place - 1] if place else None)
            place += 1

    @property
    def _room(self) -> int:
        return max(self._columns - sum(len(part) for part in self._before), 8)

    def _draw(self, token: "Token", before: "Token | None") -> Iterator[str]:
        match token.type:
            case "bullet_list_open" | "ordered_list_open":
                first = token.attrGet("start")
                self._counts.append(int(first or 1) if token.type.startswith("ordered") else None)
            case "bullet_list_close" | "ordered_list_close":
                self._counts.pop()
                self._gap = not self._counts
            case "list_item_open":
                count = self._counts[-1]
                self._sign = "• " if count is None else f"{count}. "
                self._counts[-1] = None if count is None else count + 1
                self._before.append(" " * len(self._sign))
            case "blockquote_open":
                self._before.append("│ ")
            case "list_item_close" | "blockquote_close":
                self._before.pop()
            case "inline":
                heading = before is not None and before.type == "heading_open"
                shown = _inline(token.children or [], coloured=self._coloured)
                text = _styled(shown, "heading") if heading else shown
                yield from self._placed(_lines_of(text, self._room, coloured=self._coloured))
            case "fence" | "code_block":
                language = token.info.split(" ")[0]
                code = render_code(token.content.rstrip("\n"), language, coloured=self._coloured)
                yield from self._placed(code.split("\n"))
                self._gap = not self._counts
            case "hr":
                yield from self._placed(["─" * min(self._room, 20)])
            case "html_block":
                yield from self._placed(_lines_of(token.content.rstrip("\n"), self._room, coloured=False))
            case "paragraph_close" | "heading_close":
                self._gap = not token.hidden and not self._counts
            case _:
                pass

    def _placed(self, lines: Sequence[str]) -> Iterator[str]:
        if self._gap:
            yield ""
        self._gap = False
        for line in lines:
            *outer, inner = self._before or [""]
            first, self._sign = self._sign if self._sign is not None else inner, None
            yield f"{''.join(outer)}{first}{line}".rstrip()


def _styled(text: str, style: str) -> str:
    place = [*_CODES].index(style) if style in _CODES else 0
    return f"{chr(_OPEN + place)}{text}{chr(_CLOSE + place)}"


def _lines_of(text: str, columns: int, *, coloured: bool) -> list[str]:
    """Wrap the text, and turn style marks into terminal codes. No style continues on the next line."""
    wrapped = wrap(text, max(columns, 8)).split("\n")
    if not coloured:
        return [_MARKS.sub("", line) for line in wrapped]
    codes = [f"\x1b[{code.format(code_of('cyan'))}m" for code in _CODES.values()]
    lines: list[str] = []
    current: list[str] = []

    def change_style(mark: re.Match[str]) -> str:
        closes, place = divmod(ord(mark[0]) - _OPEN, _CLOSE - _OPEN)
        if not closes:
            current.append(codes[place])
        elif codes[place] in current:
            current.remove(codes[place])
        return "\x1b[0m" + "".join(current)

    for line in wrapped:
        shown = "".join(current) + _MARKS.sub(change_style, line)
        lines.append(shown + ("\x1b[0m" if current else ""))
    return lines


def _inline(tokens: Sequence["Token"], *, coloured: bool) -> str:
    shown: list[str] = []
    opened: list[int] = []
    for token in tokens:
        if token.type.endswith("_open"):
            opened.append(len(shown))
            shown.append(str(token.attrGet("href") or ""))
        elif token.type.endswith("_close"):
            start = opened.pop()
            target, said = shown[start], "".join(shown[start + 1 :])
            if token.info == "auto" and target.startswith("mailto:"):
                target, said = "", f"<{said}>"  # as in `Ann <ann@example.org>`
            tail = f" ({target})" if target and target != said else ""
            shown[start:] = [_styled(said, token.type.removesuffix("_close")) + tail]
        elif token.type == "code_inline":
            shown.append(_styled(token.content, "code") if coloured else f"`{token.content}`")
        else:
            shown.append("\n" if token.type in ("softbreak", "hardbreak") else token.content)
    return "".join(shown)


def _table(tokens: Sequence["Token"], columns: int, *, coloured: bool) -> list[str]:
    from rich import box  # noqa: PLC0415 - as above
    from rich.table import Table  # noqa: PLC0415 - as above
    from rich.text import Text  # noqa: PLC0415 - as above

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    row: list[Text] = []
    for place, token in enumerate(tokens):
        if token.type == "inline":
            said = _lines_of(_inline(token.children or [], coloured=coloured), 10_000, coloured=coloured)
            row.append(Text.from_ansi("\n".join(said)))
            if tokens[place - 1].type == "th_open":
                table.add_column(row[-1], overflow="fold")
        elif token.type == "tr_close":
            if tokens[place - 1].type == "td_close":
                table.add_row(*row)
            row = []
    console = _console(columns, coloured=coloured)
    with console.capture() as drawn:
        console.print(table)
    return [line.rstrip() for line in drawn.get().rstrip("\n").split("\n")]
