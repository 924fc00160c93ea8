"""Redaction of events before they are stored, and of live updates before they are shown."""

import re
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar, cast

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ConsultationAnswered,
    DecisionMade,
    ErrorReported,
    Event,
    PlanChanged,
    Reply,
    RequestFinished,
    StoredEvent,
    TaskListStarted,
    UsageReported,
    UserMessage,
)
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import (
    LiveUpdate,
    OutputPiece,
    ReplyPiece,
    ReplyVoid,
    ThinkingShown,
    Writing,
)
from duckflow.domain.model import ChatMessage
from duckflow.domain.patterns import lazy_regex
from duckflow.safety.redaction.patterns import NAME_NEEDLES
from duckflow.safety.redaction.redactor import Redactor, rewrite

Piece = TypeVar("Piece")
_BEGIN, _END = "-----BEGIN", "-----END"
_LONGEST_KEY = 20_000
_LONGEST_LINE = 600
_LONGEST_RUN = 65_536
_SECRET_LETTERS = "".join(map(chr, range(ord("!"), ord("~") + 1)))
_OPAQUE = lazy_regex(r"[A-Za-z0-9+/=_-]{200,}\Z")
"""Long run of letters: a signature or encrypted thinking, which may look like a key by chance."""
_TELLING = lazy_regex(rf"[!-~]*(?:{'|'.join(NAME_NEEDLES)}|bearer|basic|login)", re.IGNORECASE)


def redact_event(redactor: Redactor, event: Event) -> Event:
    """Return the event without secrets. Those in decisions, and in user edits of them, can be restored."""
    match event:
        case DecisionMade():
            # Clean the decision first: `exchange`, its original wording, has the same values in escaped form.
            decision = redactor.clean_all(event.decision, own=True)
            exchange = tuple(clean_message(message, redactor.clean) for message in event.exchange)
            return replace(event, decision=decision, exchange=exchange)
        case PlanChanged() | TaskListStarted():
            return redactor.clean_all(event, own=True)
        case ApprovalAnswered(edited=edited) if edited is not None:
            rest = redactor.clean_all(replace(event, edited=None))
            return replace(rest, edited=redactor.clean_all(edited, own=True))
        case _:
            return redactor.clean_all(event)


def clean_message(message: ChatMessage, clean: Callable[[str], str]) -> ChatMessage:
    """Return the message without secrets. A thought that contains a secret is removed as a whole."""

    def clean_readable(text: str) -> str:
        return text if _OPAQUE.match(text) else clean(text)

    # A provider may have signed the thoughts of its model, and would reject altered ones.
    thoughts = tuple(one for one in message.thoughts if rewrite(one, clean_readable) is one)
    cleaned = cast("ChatMessage", rewrite(replace(message, thoughts=()), clean))
    return replace(cleaned, thoughts=thoughts)


def said_by_user(event: Event) -> bool:
    """Return whether the event has the user's own words, in which case they learn of redacted secrets."""
    return isinstance(event, UserMessage | ApprovalAnswered | ConsultationAnswered)


class LiveRedaction:
    """Pass live updates on, but hold back the last characters if a secret may begin there."""

    def __init__(self, redactor: Redactor) -> None:
        self._reply = PieceRedaction(redactor, lambda text: ReplyPiece(text=text))
        self._thinking = PieceRedaction(redactor, lambda text: ThinkingShown(text=text))
        self._output = PieceRedaction(redactor, lambda text: OutputPiece(text=text))

    def take(self, what: StoredEvent | LiveUpdate) -> Iterator[StoredEvent | LiveUpdate]:
        """Yield the updates that may be shown now."""
        match what:
            case ThinkingShown(text=text):
                yield from self._thinking.take(text)
            case OutputPiece(text=text):
                yield from self._output.take(text)
            case ReplyPiece(text=text):
                yield from (*self._thinking.flush(), *self._reply.take(text))
            case ReplyVoid():
                self._reply.drop()
                yield from (*self._thinking.flush(), what)
            case StoredEvent(event=DecisionMade() | Reply()):
                yield from (*self._thinking.flush(), *self._reply.flush(), what)
            case StoredEvent(event=RequestFinished() | ErrorReported(notice=False)):  # perhaps in mid-reply
                yield from (*self._thinking.flush(), *self._reply.flush(), *self._output.flush(), what)
            case Writing() | StoredEvent(event=UsageReported()):
                yield from (*self._thinking.flush(), what)
            case StoredEvent(event=ActionFinished()):
                yield from (*self._output.flush(), what)
            case _:
                yield what


class PieceRedaction(Generic[Piece]):
    """Redact text that arrives in pieces, because a secret may begin in one piece and end in another."""

    def __init__(self, redactor: Redactor, show: Callable[[str], Piece]) -> None:
        self._redactor = redactor
        self._show = show
        self._held = ""

    def take(self, piece: str) -> Iterator[Piece]:
        """Yield the text that is safe to show now, if any."""
        self._held += piece
        end = self._certain(self._held)
        if end:
            certain, self._held = self._held[:end], self._held[end:]
            yield self._show(self._redactor.clean(certain))

    def flush(self) -> Iterator[Piece]:
        """Yield the text that was held back, because no piece follows."""
        held, self._held = self._held, ""
        if held:
            yield self._show(self._redactor.clean(held))

    def drop(self) -> None:
        """Discard the text held back."""
        self._held = ""

    def _certain(self, held: str) -> int:
        """Return the number of leading characters that can't be part of a secret that is still incomplete."""
        key, over = _last_key(held)
        if over is None and len(held) - key < _LONGEST_KEY:
            return key
        over = over or 0
        end = len(held.rstrip(_SECRET_LETTERS))
        line = max(held.rfind("\n", 0, end) + 1, len(held) - _LONGEST_LINE, over)
        if "\n" not in held[end:] and (name := _TELLING.search(held, line)):
            end = min(end, name.start())
        if len(held) - end > _LONGEST_RUN:
            return len(held)
        end = key if key < end < over else end
        return min([end, *(_value_start(held, value, end) for value in self._redactor.spaced)])


def _last_key(held: str) -> tuple[int, int | None]:
    """Return where the last private key starts and ends. The end is None while the key is incomplete."""
    begin = held.rfind(_BEGIN)
    if begin < 0:
        return 0, 0
    end = held.find(_END, begin)
    over = held.find("-----", end + len(_END)) if end >= 0 else -1
    return begin, over + 5 if over >= 0 else None


def _value_start(held: str, value: str, end: int) -> int:
    """Return where a known value starts that crosses `end` or the end of the text; otherwise `end`."""
    whole = held.find(value, max(end - len(value) + 1, 0))
    if 0 <= whole < end:
        return whole
    for length in range(min(len(value) - 1, len(held)), 0, -1):
        if held.endswith(value[:length]):
            return len(held) - length
    return end
