"""The screen: writes replies block by block, and all other events as lines."""

import time
from collections.abc import Callable, Collection, Mapping, Sequence

from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ConsultationAnswered,
    ErrorReported,
    Evaluated,
    Event,
    Reply,
    RequestFinished,
    StoredEvent,
    Undone,
    UserMessage,
)
from duckflow.domain.live_updates import (
    OutputPiece,
    ReplyPiece,
    ReplyVoid,
    ThinkingShown,
    Waiting,
)
from duckflow.domain.session_client import SessionUpdate, StatusChanged
from duckflow.domain.text import count_words
from duckflow.i18n.catalogue import text
from duckflow.ui.output.diff import difference_lines
from duckflow.ui.output.escaping import harmless, visible
from duckflow.ui.output.reply_stream import ReplyStream
from duckflow.ui.output.text_width import cut_to_width
from duckflow.ui.output.writer import Colour, Writer
from duckflow.ui.views.events import Describer, EventDescription, EventKind, Tone, waiting_line
from duckflow.ui.views.live.activity import Activity

_COLOURS: Mapping[Tone, Colour] = {"good": "green", "bad": "red", "warning": "yellow", "quiet": "dim"}
_OPTIONAL: Collection[EventKind] = ("message", "question", "undo")
_NOTICES: Collection[EventKind] = ("note", "error", "action")
FOREIGN: Collection[EventKind] = ("message", "undo")
"""Kinds of events that are shown only if another window caused them."""
_RECALLED = (
    UserMessage,
    Reply,
    ActionFinished,
    Undone,
    ApprovalAnswered,
    ConsultationAnswered,
    Evaluated,
    ErrorReported,
    RequestFinished,
)
"""Events of the last exchange that a user sees again after coming back."""
_MAX_PAUSE_S = 1.5
_MOST_SAID, _LAST_SAID = 12, 3
"""Largest number of lines of a message to show, and how many of them are its last ones."""


class Screen:
    """Writes events and live updates. Messages, questions and undos are written only if named in `also`."""

    def __init__(
        self, writer: Writer, also: Collection[EventKind] = (), clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._writer = writer
        self.also = also
        self._describe = Describer()
        self._replies = ReplyStream(writer)
        self._shown: list[str] = []
        self._held: list[EventDescription] = []
        """Notes that arrived in the middle of a reply and are shown below it."""
        self._last: str | None = None
        self.last_command = ""
        """Command whose result was shown last, so that a question about its effects need not repeat it."""
        self._notices: list[EventDescription] | None = None
        self.activity = Activity(self._replies, clock)

    def __call__(self, what: SessionUpdate) -> None:
        if not isinstance(what, StatusChanged | ThinkingShown | OutputPiece):
            self._fold_thinking()
        self.activity.note(what)
        match what:
            case ReplyPiece():
                self._shown.append(what.text)
                self._replies.feed(what.text)
            case ReplyVoid():
                self._end_reply()
            case Waiting():
                if what.wait_s is not None or not self._shown:  # otherwise this line would interrupt a reply
                    self._line(waiting_line(what), "dim")
            case StoredEvent(event=event):
                described = self._describe(event)
                if isinstance(event, ActionFinished) and described is not None:
                    self._last = described.full or described.plain
                    self.last_command = described.command
                self.show(described)
            case _:
                pass

    def show(self, described: EventDescription | None) -> None:
        """Write the description of an event, if it has one."""
        if described is not None:
            self._event(described)

    def hold_notices(self) -> None:
        """Keep notices back while a question is open, so that they do not hide it."""
        self._notices = []

    def release_notices(self) -> None:
        """Show the notices that were kept back."""
        held, self._notices = self._notices or [], None
        for described in held:
            self._event(described)

    def expand(self) -> None:
        """Show the last result, or the last thinking of the model, in full."""
        if self._last is None:
            self._line(text("chat.nothing_to_expand"), "dim")
        else:
            self._writer.raw(visible(self._last))

    def said(self, message: str) -> None:
        """Show a line that the user typed."""
        if not self._writer.formatted:
            return
        prompt = text("chat.prompt")
        shown = harmless(message).expandtabs(4).split("\n")
        if (hidden := len(shown) - _MOST_SAID) > 0:  # a question often stands below what was pasted
            first = _MOST_SAID - _LAST_SAID
            shown = [*shown[:first], text("chat.folded", count=hidden), *shown[-_LAST_SAID:]]
        lines = f"\n{' ' * len(prompt)}".join(shown)
        self._writer.raw(f"\n{self._writer.painted(prompt + lines, 'bold')}")

    def _fold_thinking(self) -> None:
        thinking = self.activity.end_thinking()
        if thinking is not None:
            lasted, self._last = thinking
            seconds, words = max(round(lasted), 1), f"{count_words(self._last):,}"
            self._line(text("thinking.over", seconds=seconds, words=words), "dim")

    def _event(self, described: EventDescription) -> None:
        if described.kind == "reply":
            self._reply(described.text)
            return
        if described.kind in ("note", "setting") and self._shown:
            self._held.append(described)
            return
        if self._notices is not None and described.kind in _NOTICES:
            self._notices.append(described)
            return
        self._end_reply()
        if described.kind in _OPTIONAL and described.kind not in self.also:
            return
        if described.kind == "message":
            self.said(described.text)
            return
        self._writer.line(described.text, _COLOURS.get(described.tone))
        if described.difference:
            self._writer.raw(*difference_lines(described.difference, self._writer))
        if described.kind == "action":
            room = self._writer.columns - 3
            more = [text("action.more", count=described.hidden)] if described.hidden else []
            tail = [harmless(line.expandtabs(4)) for line in described.output]
            tail = tail if described.whole else [cut_to_width(line, room) for line in tail]
            self._writer.raw(*(self._writer.painted(f"  {line}", "dim") for line in (*more, *tail)))
            for note in described.notes:
                self._writer.line(f"  {note}")

    def _reply(self, reply: str) -> None:
        """Write the part of a reply that was not written while it arrived."""
        shown = "".join(self._shown)
        if not reply.startswith(shown.rstrip("\n")):
            self._end_reply()
            shown = ""
        self._shown = []
        self._replies.feed(reply[len(shown) :])
        self._replies.end()
        self._write_held()

    def _end_reply(self) -> None:
        if self._shown:
            self._replies.end()
        self._shown = []
        self._write_held()

    def _write_held(self) -> None:
        held, self._held = self._held, []
        for described in held:
            self._event(described)

    def _line(self, line: str, colour: Colour | None = None) -> None:
        self._end_reply()
        self._writer.line(line, colour)


def recall(events: Sequence[StoredEvent], writer: Writer) -> None:
    """Show the last message and its results to a user who returns. Open questions are asked anyway."""
    screen, describe = Screen(writer, also=("message", "undo")), Describer()
    asked = [place for place, one in enumerate(events) if isinstance(one.event, UserMessage)]
    for place, recorded in enumerate(events):
        event = recorded.event
        if asked and place >= asked[-1] and isinstance(event, _RECALLED) and not _is_yes(event):
            screen.show(describe(event))
        else:
            describe(event)  # the summary at the end counts the whole request


def _is_yes(event: Event) -> bool:
    return isinstance(event, ApprovalAnswered) and event.yes


def replay(events: Sequence[StoredEvent], speed: float) -> None:
    """Print the session as it happened. `speed` is a factor for the pauses; 0 leaves them out."""
    screen = Screen(Writer(formatted=True), also=("message", "question", "undo"))
    before = events[0].at if events else None
    for recorded in events:
        if before is not None and speed > 0:
            time.sleep(min(max((recorded.at - before).total_seconds(), 0) / speed, _MAX_PAUSE_S))
        before = recorded.at
        screen(recorded)
