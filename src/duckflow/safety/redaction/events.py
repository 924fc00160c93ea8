"""Redaction of what happens: events before they are stored, live updates before they are shown."""

import re
from collections.abc import Callable, Iterator
from typing import cast

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ConsultationAnswered,
    DecisionMade,
    Event,
    PlanChanged,
    Recorded,
    Reply,
    TaskListStarted,
    UsageReported,
    UserMessage,
)
from duckflow.domain.frozen import replace
from duckflow.domain.live_updates import LiveUpdate, OutputPiece, ReplyPiece, ReplyVoid, ThinkingShown
from duckflow.domain.model import ChatMessage
from duckflow.domain.patterns import late
from duckflow.safety.redaction.patterns import NAME_NEEDLES
from duckflow.safety.redaction.redactor import Redactor, rewrite

_BEGIN, _END = "-----BEGIN", "-----END"
_LONGEST_KEY = 20_000
_LONGEST_LINE = 600
_LONGEST_RUN = 65_536
_OPAQUE = late(r"[A-Za-z0-9+/=_-]{200,}\Z")
"""A signature or encrypted thinking, in which chance may spell the beginning of any kind of key."""
_TELLING = late(rf"[!-~]*(?:{'|'.join(NAME_NEEDLES)}|bearer|basic|login)", re.IGNORECASE)


def redact_event(redactor: Redactor, event: Event) -> Event:
    """The event without secrets. What a model decided, and what the user made of it, can be put back."""
    match event:
        case DecisionMade():
            # The decision first: the words it was made in have the same values, but escaped.
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
    """The message without secrets. A thought that holds one is left out: its provider may have signed it, and
    refuses it if it is altered."""

    def clean_readable(text: str) -> str:
        return text if _OPAQUE.match(text) else clean(text)

    thoughts = tuple(one for one in message.thoughts if rewrite(one, clean_readable) is one)
    cleaned = cast("ChatMessage", rewrite(replace(message, thoughts=()), clean))
    return replace(cleaned, thoughts=thoughts)


def said_by_user(event: Event) -> bool:
    """Whether these are the user's own words, who should know when something in them was hidden."""
    return isinstance(event, UserMessage | ApprovalAnswered | ConsultationAnswered)


class LiveRedaction:
    """Lets live updates through, less their last characters while these may be the beginning of a secret."""

    def __init__(self, redactor: Redactor) -> None:
        self._reply = PieceRedaction(redactor)
        self._thinking = PieceRedaction(redactor)
        self._output = PieceRedaction(redactor)

    def take(self, what: Recorded | LiveUpdate) -> Iterator[Recorded | LiveUpdate]:
        """What may be shown now."""
        match what:
            case ThinkingShown():
                yield from (ThinkingShown(text=text) for text in self._thinking.take(what.text))
                return
            case ReplyPiece():
                yield from self._rest_of_thinking()
                yield from (ReplyPiece(text=text) for text in self._reply.take(what.text))
                return
            case OutputPiece():
                yield from (OutputPiece(text=text) for text in self._output.take(what.text))
                return
            case ReplyVoid():
                self._reply.drop()
                yield from self._rest_of_thinking()
            case Recorded(event=UsageReported()):
                yield from self._rest_of_thinking()
            case Recorded(event=DecisionMade() | Reply()):
                yield from self._rest_of_thinking()
                yield from (ReplyPiece(text=text) for text in self._reply.flush())
            case Recorded(event=ActionFinished()):
                yield from (OutputPiece(text=text) for text in self._output.flush())
            case _:
                pass
        yield what

    def _rest_of_thinking(self) -> Iterator[LiveUpdate]:
        yield from (ThinkingShown(text=text) for text in self._thinking.flush())


class PieceRedaction:
    """Redacts a text that comes in pieces: a secret may begin in one and end in another."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._held = ""

    def take(self, piece: str) -> Iterator[str]:
        """What is certain now, if anything."""
        self._held += piece
        end = self._certain(self._held)
        if end:
            certain, self._held = self._held[:end], self._held[end:]
            yield self._redactor.clean(certain)

    def flush(self) -> Iterator[str]:
        """The rest: nothing follows."""
        held, self._held = self._held, ""
        if held:
            yield self._redactor.clean(held)

    def drop(self) -> None:
        """Forget what was held."""
        self._held = ""

    def _certain(self, held: str) -> int:
        """How much of it can't be the beginning of a secret."""
        key, over = _last_key(held)
        if over is None and len(held) - key < _LONGEST_KEY:
            return key
        over = over or 0
        end = _run_start(held)
        line = max(held.rfind("\n", 0, end) + 1, len(held) - _LONGEST_LINE, over)
        if "\n" not in held[end:] and (name := _TELLING.search(held, line)):
            end = min(end, name.start())
        if len(held) - end > _LONGEST_RUN:
            return len(held)
        end = key if key < end < over else end
        return min([end, *(_value_start(held, value, end) for value in self._redactor.spaced)])


def _last_key(held: str) -> tuple[int, int | None]:
    """Where the last private key begins, and where it is over: None while it is not."""
    begin = held.rfind(_BEGIN)
    if begin < 0:
        return 0, 0
    end = held.find(_END, begin)
    over = held.find("-----", end + len(_END)) if end >= 0 else -1
    return begin, over + 5 if over >= 0 else None


def _run_start(held: str) -> int:
    """Where the last word begins, as far as it is of letters that secrets are made of."""
    start = len(held)
    while start > 0 and "!" <= held[start - 1] <= "~":
        start -= 1
    return start


def _value_start(held: str, value: str, end: int) -> int:
    """Where this value begins, if the text ends in its beginning or `end` is in the middle of it."""
    whole = held.find(value, max(end - len(value) + 1, 0))
    if 0 <= whole < end:
        return whole
    for length in range(min(len(value) - 1, len(held)), 0, -1):
        if held.endswith(value[:length]):
            return len(held) - length
    return end
