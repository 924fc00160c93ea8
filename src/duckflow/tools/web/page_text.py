"""Text of an HTML page: the visible parts, without scripts and hidden elements."""

from html.parser import HTMLParser

from duckflow.domain.patterns import lazy_regex

_UNREAD = frozenset(("script", "style", "noscript", "template", "svg", "iframe", "object", "head", "canvas"))
_BLOCKS = frozenset(
    (
        *("address", "article", "aside", "blockquote", "br", "dd", "div", "dl", "dt", "figure", "footer"),
        *("form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre"),
        *("section", "table", "tr", "ul"),
    )
)
_EMPTY = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "wbr"))
_SPACES = lazy_regex(r"[ \t\r\f\v\u00a0]+")
_GAPS = lazy_regex(r"\n\s*\n\s*")


class _PageReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.title = ""
        self._unread: list[str] = []
        self._in_title = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        hidden = "hidden" in given or "display:none" in (given.get("style") or "").replace(" ", "")
        self._in_title = tag == "title"
        if tag not in _EMPTY and (self._unread or hidden or tag in _UNREAD):
            self._unread.append(tag)
        elif tag in _BLOCKS:
            self.pieces.append("\n- " if tag == "li" else "\n")

    def handle_endtag(self, tag: str) -> None:
        self._in_title = False
        if tag in self._unread:
            del self._unread[self._unread.index(tag) :]
        elif tag in _BLOCKS and not self._unread:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        if self._in_title:
            self.title += data
        elif not self._unread:
            self.pieces.append(data)


def page_text(html: str) -> str:
    """Return the title and the text of an HTML page."""
    reader = _PageReader()
    reader.feed(html)
    reader.close()
    text = _SPACES.sub(" ", "".join(reader.pieces))
    lines = "\n".join(line.strip() for line in text.split("\n"))
    return f"{reader.title.strip()}\n\n{_GAPS.sub(chr(10) * 2, lines).strip()}".strip()
