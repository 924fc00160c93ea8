"""The part of a prompt that only grows: what was said and what was found, as chat messages (SPEC F5).

It is read as it grows, so a late loop costs no more than an early one.
"""

from collections.abc import Sequence

from duckflow.domain.frozen import replace
from duckflow.domain.model import ChatMessage
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.prompts.lines import LineKind, PromptLines
from duckflow.prompts.tokens import TokenCounter
from duckflow.prompts.trimming import LEFT_OUT, trim


class PromptHistory:
    """What one model is shown of a session's transcript."""

    def __init__(self, counter: TokenCounter) -> None:
        self._counter = counter
        self._lines = PromptLines(counter)
        self._transcript: Sequence[TranscriptEntry] = ()
        self._request = ""

    async def read(self, state: AgentState) -> None:
        """Take in what is new."""
        self._request = state.request.text if state.request else ""
        start = len(self._transcript) if _goes_on(self._transcript, state.transcript) else 0
        if start == 0:
            self._lines = PromptLines(self._counter)
        for at in range(start, len(state.transcript)):
            entry = state.transcript[at]
            await self._lines.add(at, _kind(entry), entry.role, entry.text, entry.pictures)
        self._transcript = state.transcript
        if start == 0 and self._lines.shown and self._request and not self._lines.said:
            # The state itself has let go of what was asked so long ago.
            await self._lines.open_with("said", f"{self._request}\n\n({LEFT_OUT})")

    async def trim(self, most: int, most_evidence: int) -> bool:
        """Leave out what does not fit; whether that was needed."""
        return await trim(self._lines, self._transcript, self._request, (most, most_evidence))

    @property
    def words(self) -> int:
        """Tokens of what was said."""
        return self._lines.words

    @property
    def evidence(self) -> int:
        """Tokens of what was found."""
        return self._lines.evidence

    def least(self, evidence: int) -> int:
        """Tokens that can't be left out, `evidence` at most of them for what was found just now."""
        newest = self._lines.newest()
        found = sum(line.tokens for line in newest if line.kind == "evidence")
        words = {id(line): line for line in (*newest, *self._lines.pinned(self._request))}
        said = sum(line.tokens for line in words.values() if line.kind != "evidence")
        return said + min(found, evidence)

    @property
    def left_out(self) -> tuple[int, int]:
        """How much is not shown any more: of what was found, and of what was said."""
        stubs = sum(line.kind == "stub" for line in self._lines.shown)
        return stubs, len(self._transcript) - sum(line.at >= 0 for line in self._lines.shown)

    def shows(self, opening: str) -> bool:
        """Whether a message of the user's that begins so is among what is shown."""
        return any(line.message.text.startswith(opening) for line in self._lines.said)

    def with_ending(self, ending: str) -> list[ChatMessage]:
        """All that is shown and a last word from our side. Marks stand where the next prompt, and the one
        before, have the same beginning."""
        messages = [line.message for line in self._lines.shown]
        answered = len(messages) - len(self._lines.newest()) - 1
        for end in {answered - 1, len(messages) - 1}:
            if end >= 0:
                messages[end] = replace(messages[end], stable=True)
        return [*messages, ChatMessage(role="user", text=ending)]


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
