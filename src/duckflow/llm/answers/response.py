"""Collect a model's response from its stream, and show the user the reply meanwhile."""

from collections.abc import Callable

from duckflow.domain.live_updates import LiveUpdate, ReplyPiece, ReplyVoid, ThinkingShown, Waiting, Writing
from duckflow.domain.model import (
    CallPiece,
    ModelClient,
    ModelPiece,
    ModelRequest,
    Retrying,
    StopReason,
    StreamEnd,
    TextPiece,
    ThinkingPiece,
    Thought,
    ToolCall,
    Usage,
)
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.answers.partial_reply import ReplyExtractor
from duckflow.llm.answers.strict_json import SURROGATE
from duckflow.llm.streams import closing

MAX_RESPONSE = 4_000_000
"""Most bytes read of one response."""

_HIGH_AT_END = lazy_regex("[\ud800-\udbff]\\Z")


class CollectedResponse:
    """Response as received so far, verbatim. `stop` is None until it is complete."""

    def __init__(self, on_update: Callable[[LiveUpdate], None], *, has_reply: bool, plain: bool) -> None:
        self._on_update = on_update
        self._has_reply = has_reply
        self._plain = plain
        self.stop: StopReason | None = None
        self.usage = Usage()
        self._restart()

    def _restart(self) -> None:
        self._texts: list[str] = []
        self.calls: list[ToolCall] = []
        self.thoughts: list[Thought] = []
        self._shown: list[str] = []
        self._half = ""
        self._size = 0
        self._reply = ReplyExtractor(plain=self._plain)

    @property
    def too_large(self) -> bool:
        """Return True if the response exceeds the size limit."""
        return self._size > MAX_RESPONSE

    @property
    def shown(self) -> str:
        """Return the part of the reply that the user has seen."""
        return "".join(self._shown)

    @property
    def text(self) -> str:
        """Return the text without tool calls."""
        return "".join([*self._texts, self._half])

    def take(self, piece: ModelPiece) -> None:
        """Add the next piece."""
        match piece:
            case TextPiece():
                self._text(piece.text)
            case ToolCall():
                self.calls.append(piece)
                self._size += _size(piece.name) + _size(piece.arguments)
            case CallPiece():
                self._on_update(Writing(size=piece.size))
            case ThinkingPiece():
                self._on_update(ThinkingShown(text=piece.text))
            case Thought():
                self.thoughts.append(piece)
            case Retrying():
                self._restart()
                self._on_update(ReplyVoid())
                self._on_update(Waiting(reason=piece.reason, wait_s=piece.wait_s))
            case StreamEnd():
                self.stop, self.usage = piece.stop, piece.usage

    def append_rest(self, text: str, rest: "CollectedResponse") -> None:
        """Add the rest of a response that was cut: `text`, and the calls, thoughts and usage of `rest`."""
        self.take(TextPiece(text=text))
        self.calls += rest.calls
        self.thoughts = rest.thoughts  # thoughts of the part that was cut don't fit the whole
        self.stop, self.usage = rest.stop, self.usage + rest.usage

    def _text(self, text: str) -> None:
        self._size += _size(text)
        text = self._half + text
        # Some providers split a stream inside an escaped surrogate pair.
        self._half = text[-1] if _HIGH_AT_END.search(text) else ""
        text = text[: len(text) - len(self._half)]
        self._texts.append(_paired(text))
        shown = self._reply.feed(_paired(text, lone="replace")) if self._has_reply else ""
        if shown:
            self._shown.append(shown)
            self._on_update(ReplyPiece(text=shown))
        else:
            self._on_update(Writing(size=_size(text)))


async def collect(
    client: ModelClient,
    request: ModelRequest,
    on_update: Callable[[LiveUpdate], None] = lambda _: None,
    *,
    has_reply: bool = False,
    until: Callable[[str], bool] | None = None,
) -> CollectedResponse:
    """Collect a response until it ends or `until` accepts its text. With `has_reply`, show its reply."""
    response = CollectedResponse(on_update, has_reply=has_reply, plain=bool(request.tools))
    async with closing(client.stream(request)) as pieces:
        async for piece in pieces:
            response.take(piece)
            if response.stop or response.too_large or (until is not None and until(response.text)):
                break
    return response


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _paired(text: str, lone: str = "surrogatepass") -> str:
    """Combine surrogate pairs into characters; `lone` is the error handler for unpaired halves."""
    if not SURROGATE.search(text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", lone)
