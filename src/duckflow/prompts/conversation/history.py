"""The part of a prompt that only grows: what was said and what was found, as chat messages (F5).

It is read as it grows, so a late loop costs no more than an early one.
"""

from collections.abc import Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage
from duckflow.domain.state import AgentState, TranscriptEntry, new_state
from duckflow.prompts.conversation.lines import LineKind, PromptLine, PromptLines
from duckflow.prompts.conversation.recap import write_recap
from duckflow.prompts.conversation.trimming import (
    KEPT_LOOPS,
    Room,
    Untouchable,
    droppable,
    shorten,
    trim,
    untouchable,
    worth_a_step,
)
from duckflow.prompts.sections import SectionName
from duckflow.prompts.tokens import TokenCounter

_RECAP_SHARE = 16
"""What is said in place of what is left out may take one in so many tokens."""


class PromptHistory:
    """What one model is shown of a session's transcript."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._lines = PromptLines(counter)
        self._transcript: Sequence[TranscriptEntry] = ()
        self._state = new_state()
        self._request = ""
        self._cut_off = False
        """Whether the state itself has let go of the beginning since the last recap."""
        self._let_go = 0
        """How many results went with it."""
        self._found = 0
        """How many results there are in the transcript."""
        self.recap = ""
        """What is said in place of what is left out."""

    async def read(self, state: AgentState) -> None:
        """Take in what is new."""
        self._request = state.request.text if state.request else ""
        start = len(self._transcript) if _goes_on(self._transcript, state.transcript) else 0
        counted = self._counted() if start == 0 else {}
        if start == 0:
            self._lines, self._found = PromptLines(self._counter), 0
        for at in range(start, len(state.transcript)):
            entry = state.transcript[at]
            message = _message(entry, self._seen_again(state, entry))
            self._found += entry.evidence_id is not None
            tokens = counted.get(id(entry.text)) if message.text is entry.text else None
            await self._lines.add(at, _kind(entry), message, tokens)
        cut_off = bool(self._transcript) or len(self._lines.said) < len(state.said)
        self._state, self._transcript = state, state.transcript
        if start == 0 and self._lines.shown:
            lost = bool(self._request) and not self._lines.said
            self._cut_off = cut_off or lost
            first = next((entry.evidence_id for entry in state.transcript if entry.evidence_id), None) or "e1"
            self._let_go = int(first[1:]) - 1 if self._cut_off and first[1:].isdecimal() else 0
            if lost:
                await self._lines.open_with("said", self._request)

    def _counted(self) -> dict[int, int]:
        """The tokens of entries that are shown whole, by the text they hold."""
        shown = ((line, self._transcript[line.at].text) for line in self._lines.shown if line.at >= 0)
        return {id(text): line.tokens for line, text in shown if text == line.message.text}

    def _seen_again(self, state: AgentState, entry: TranscriptEntry) -> str:
        """The text of a result. One that points to another shows that again where it is shown no more."""
        if not entry.same_as:
            return entry.text
        places = (at for at, one in enumerate(state.transcript) if one.evidence_id == entry.same_as)
        place = next(places, None)
        if place is None:
            return entry.text
        meant = state.transcript[place].text
        if any(line.at == place and line.message.text == meant for line in self._lines.shown):
            return entry.text
        return f"{entry.text.partition(chr(10))[0]}\n{meant.partition(chr(10))[2]}"

    async def trim(self, most: int, limit: int | None = None) -> bool:
        """Leave out what may go once there are more than `most` tokens, and say what matters of it.

        `limit`, if that is more, is what even that may take which never goes. True if something was left out.
        """
        lines, room = self._lines, Room(most, max(limit or 0, most))
        over, keep = False, Untouchable()
        if lines.tokens > room.most:
            keep = untouchable(lines, self._state)
            going = droppable(lines, self._state, keep)
            over = worth_a_step(lines, going, keep, room)
            if over:
                lines.remove([line for line in lines.shown if line.at < 0 and line.kind == "words"])
                await trim(lines, self._state, going, keep, room)
        if over or self._cut_off:
            await self._sum_up(room)
        if over:
            await shorten(lines, self._state, keep, room.limit)
        return over

    async def _sum_up(self, room: Room) -> None:
        forgotten = self._cut_off or self.left_out[1] > 0
        self._cut_off = False
        most = min(room.most // _RECAP_SHARE, room.limit - self._lines.tokens)
        self.recap = await write_recap(self._state, self._lines, self._counter, most, forgotten=forgotten)
        if self.recap:
            await self._lines.open_with("words", self.recap)

    @property
    def tokens(self) -> dict[SectionName, int]:
        """Tokens of what was said, and of what was found."""
        return {"conversation": self._lines.words, "evidence": self._lines.evidence}

    def least(self, evidence: int) -> int:
        """Tokens that can't be left out, `evidence` at most of them for what was found lately."""
        newest = self._lines.newest()
        found = sum(line.tokens for line in self._lines.recent_results(KEPT_LOOPS))
        words = {id(line): line for line in (*newest, *self._lines.pinned(self._request))}
        said = sum(line.tokens for line in words.values() if line.kind != "evidence")
        return said + min(found, evidence)

    @property
    def dropped(self) -> list[str]:
        """The results that are not shown any more, by id and file or operation."""
        shown = {line.at for line in self._lines.shown if line.kind == "evidence"}
        older = [f"e1 … e{self._let_go}"] if self._let_go else []
        return older + [
            f"{entry.evidence_id} {entry.path or entry.operation or ''}".rstrip()
            for at, entry in enumerate(self._transcript)
            if entry.evidence_id and at not in shown
        ]

    @property
    def left_out(self) -> tuple[int, int]:
        """How much is not shown any more: of what was found, and of what was said."""
        kinds = [line.kind for line in self._lines.shown if line.at >= 0]
        found = self._found - kinds.count("evidence")
        words = kinds.count("said") + kinds.count("words")
        return self._let_go + found, len(self._transcript) - self._found - words

    def shows(self, opening: str) -> bool:
        """Whether a message of the user's that begins so is among what is shown."""
        return any(line.message.text.startswith(opening) for line in self._lines.said)

    def marked(self) -> list[PromptLine]:
        """Return all that is shown, with marks where the next prompt, and the one before, have the same
        beginning."""
        lines = list(self._lines.shown)
        answered = len(lines) - len(self._lines.newest()) - 1
        for end in {answered - 1, len(lines) - 1}:
            if end >= 0:
                line = lines[end]
                stable = replace(line.message, stable=True)
                lines[end] = PromptLine(line.at, line.kind, stable, line.tokens)
        return lines

    def with_ending(self, ending: str) -> list[ChatMessage]:
        """Return all that is shown and a last word from our side."""
        return [*(line.message for line in self.marked()), ChatMessage(role="user", text=ending)]


def _message(entry: TranscriptEntry, text: str) -> ChatMessage:
    return ChatMessage(
        role=entry.role,
        text=text,
        pictures=entry.pictures,
        calls=entry.calls,
        thoughts=entry.thoughts,
        result_of=entry.result_of,
        failed=entry.failed,
    )


def _kind(entry: TranscriptEntry) -> LineKind:
    if entry.evidence_id:
        return "evidence"
    return "said" if entry.said else "words"


def _goes_on(before: Sequence[TranscriptEntry], now: Sequence[TranscriptEntry]) -> bool:
    """Whether `now` is what was read before, and more. An entry that is marked keeps its text."""
    count = len(before)
    if count == 0 or count > len(now):
        return False
    return all(now[at].text is before[at].text for at in (0, count // 2, count - 1))
