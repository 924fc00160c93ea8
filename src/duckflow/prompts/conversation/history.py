"""The conversation as chat messages: the part of a prompt that only grows (F5)."""

from collections.abc import Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage
from duckflow.domain.state import AgentState, TranscriptEntry, new_state
from duckflow.llm.tokens import TokenCounter
from duckflow.prompts.conversation.lines import PromptLine, PromptLines
from duckflow.prompts.conversation.recap import write_recap
from duckflow.prompts.conversation.trimming import KEPT_LOOPS, Room, Trimmer
from duckflow.prompts.sections import SectionName

_RECAP_SHARE = 16
"""The recap may take a sixteenth of the conversation's tokens."""


class PromptHistory:
    """The part of a session's transcript that one model sees."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._lines = PromptLines(counter)
        self._transcript: Sequence[TranscriptEntry] = ()
        self._state = new_state()
        self._request = ""
        self._cut_off = False
        """True if the oldest entries have been dropped from the state itself since the last recap."""
        self._let_go = 0
        """Number of results among the entries that were dropped from the state."""
        self._compactions = 0
        """Compactions asked for by the user that were carried out."""
        self.recap = ""
        """Summary that replaces the entries that were left out."""

    async def read(self, state: AgentState) -> None:
        """Add the entries that are new since the last read."""
        self._request = state.request.text if state.request else ""
        start = len(self._transcript) if _goes_on(self._transcript, state.transcript) else 0
        counted = self._counted() if start == 0 else {}
        if start == 0:
            self._lines = PromptLines(self._counter)
        for at in range(start, len(state.transcript)):
            entry = state.transcript[at]
            message = _message(entry, self._seen_again(state, entry))
            tokens = counted.get(id(entry.text)) if message.text is entry.text else None
            kind = "evidence" if entry.evidence_id else "said" if entry.said else "words"
            await self._lines.add(at, kind, message, tokens)
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
        """Return the token counts of entries that are shown in full, keyed by the identity of their text."""
        shown = ((line, self._transcript[line.at].text) for line in self._lines.shown if line.at >= 0)
        return {id(text): line.tokens for line, text in shown if text == line.message.text}

    def _seen_again(self, state: AgentState, entry: TranscriptEntry) -> str:
        """Return the text of a result. If it refers to an earlier result that was left out, repeat that."""
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
        """Leave out older entries beyond `most` tokens, and write a recap. Return True if any are left out.

        `limit` is the hard limit for entries that are never left out.
        """
        lines, room = self._lines, Room(most, max(limit or 0, most))
        wanted = self._state.compactions > self._compactions
        self._compactions = self._state.compactions
        trimmer = Trimmer(lines, self._state, Room(0, room.limit) if wanted else room)
        due = trimmer if wanted or (lines.tokens > room.most and trimmer.is_due()) else None
        if due:
            lines.remove([line for line in lines.shown if line.at < 0 and line.kind == "words"])
            await due.trim()
        if due or self._cut_off:
            await self._sum_up(room)
        if due:
            await due.fit_recent()
        return due is not None

    async def _sum_up(self, room: Room) -> None:
        forgotten = self._cut_off or self.left_out[1] > 0
        self._cut_off = False
        most = min(room.most // _RECAP_SHARE, room.limit - self._lines.tokens)
        self.recap = await write_recap(self._state, self._lines, self._counter, most, forgotten=forgotten)
        if self.recap:
            await self._lines.open_with("words", self.recap)

    @property
    def tokens(self) -> dict[SectionName, int]:
        """Tokens of the conversation and of the evidence."""
        return {"conversation": self._lines.words, "evidence": self._lines.evidence}

    def least(self, evidence: int) -> int:
        """Return the tokens left after the strongest trim, counting at most `evidence` for recent results."""
        newest = self._lines.newest()
        found = sum(line.tokens for line in self._lines.recent_results(KEPT_LOOPS))
        words = {id(line): line for line in (*newest, *self._lines.pinned(self._request))}
        said = sum(line.tokens for line in words.values() if line.kind != "evidence")
        return said + min(found, evidence)

    @property
    def dropped(self) -> list[str]:
        """Ids of the results that the prompt no longer contains, with their file or operation."""
        shown = {line.at for line in self._lines.shown if line.kind == "evidence"}
        older = [f"e1 … e{self._let_go}"] if self._let_go else []
        return older + [
            f"{entry.evidence_id} {entry.path or entry.operation or ''}".rstrip()
            for at, entry in enumerate(self._transcript)
            if entry.evidence_id and at not in shown
        ]

    @property
    def left_out(self) -> tuple[int, int]:
        """Number of results, and number of messages, that the prompt no longer contains."""
        kinds = [line.kind for line in self._lines.shown if line.at >= 0]
        found = sum(entry.evidence_id is not None for entry in self._transcript)
        words = kinds.count("said") + kinds.count("words")
        return self._let_go + found - kinds.count("evidence"), len(self._transcript) - found - words

    def shows(self, opening: str) -> bool:
        """Return True if the prompt contains a message of the user that starts with `opening`."""
        return any(line.message.text.startswith(opening) for line in self._lines.said)

    def marked(self) -> list[PromptLine]:
        """Return all lines, with cache marks where the previous prompt ended and where this one ends."""
        lines = list(self._lines.shown)
        answered = len(lines) - len(self._lines.newest()) - 1
        for end in {answered - 1, len(lines) - 1}:
            if end >= 0:
                line = lines[end]
                stable = replace(line.message, stable=True)
                lines[end] = PromptLine(line.at, line.kind, stable, line.tokens)
        return lines

    def with_ending(self, ending: str) -> list[ChatMessage]:
        """Return all messages and a closing one from the program."""
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


def _goes_on(before: Sequence[TranscriptEntry], now: Sequence[TranscriptEntry]) -> bool:
    """Return True if `now` continues `before`. It compares a few text objects, which never change."""
    count = len(before)
    if count == 0 or count > len(now):
        return False
    return all(now[at].text is before[at].text for at in (0, count // 2, count - 1))
