"""Trimming of a conversation that has grown too long (F3).

Results are left out first: outdated ones, then the largest and oldest. Then messages are left out. Each trim
removes a lot, so that trims are rare and later prompts begin the same. The user's request, the results of the
last two loops and the changes made for the request stay as long as the window can hold them.
"""

from typing import NamedTuple

from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.text import head_and_tail
from duckflow.prompts.conversation.lines import PromptLine, PromptLines

KEPT_LOOPS = 2
"""Number of recent loops whose results are always kept."""

_SHORT = 40
"""Results up to this many tokens stay as they are, because a stub would hardly be shorter."""

_WORTH = 8
"""A trim must free an eighth of the tokens, because it changes the beginning of every later prompt."""

_FEW_LETTERS = 200
_TRIES = 4

LEFT_OUT = "left out, look again if you need it"
NO_ROOM = "left out, too much was found at once: look again, at less at a time"


class Room(NamedTuple):
    """Token limits of a conversation: above `most` it is trimmed if that pays; `limit` is the hard limit."""

    most: int
    limit: int


class Trimmer:
    """Trims the lines of one conversation."""

    def __init__(self, lines: PromptLines, state: AgentState, room: Room) -> None:
        self._lines = lines
        self._transcript = state.transcript
        self._room = room
        request = state.request.text if state.request else ""
        pinned = lines.pinned(request)
        begun = pinned[0].at if request and pinned else 0
        changed = state.request.changed if state.request else ()
        ids = {entry.evidence_id: at for at, entry in enumerate(state.transcript) if entry.evidence_id}
        recent = {line.at for line in lines.recent_results(KEPT_LOOPS)}
        self._recent = recent | {ids[one] for at in recent if (one := state.transcript[at].same_as) in ids}
        """Transcript indexes of the results of the last loops."""
        self._needed = self._recent | {line.at for line in (*lines.newest(), *pinned)}
        """The same, and messages since the last answer, the request, and the user's last message."""
        self._kept = self._needed | {
            at
            for at, entry in enumerate(state.transcript)
            if at >= begun
            and entry.path in changed
            and not entry.stale
            and (entry.supports == "change" or entry.digest is not None)
        }
        """The same, and results that show changes made for the request."""

    def is_due(self) -> bool:
        """Return True if the hard limit is exceeded, or `most` is exceeded and a trim frees enough."""
        lines, most = self._lines, self._room.most
        if lines.tokens > self._room.limit:
            return True
        wins = sum(line.tokens for line in self._droppable())
        if lines.words > most // 2:
            words = (line for line in lines.shown if line.kind != "evidence")
            wins += sum(line.tokens for line in words if line.at not in self._kept)
        return lines.tokens > most and wins > most // _WORTH

    async def trim(self) -> None:
        """Leave out outdated results, then others and messages, down to about half of `most`."""
        lines, most = self._lines, self._room.most
        for line in self._droppable():
            if self._transcript[line.at].stale or lines.tokens > most // 2:
                await self._leave_out(line)
        if lines.words > most // 2:
            self._forget(lines.words - most // 4)
        needed = sum(line.tokens for line in lines.shown if line.at in self._needed)
        if lines.tokens > self._room.limit >= needed:
            await self._make_room(most * 3 // 4)

    async def fit_recent(self) -> None:
        """If the results of the last loops alone are too long, leave out older ones and shorten the last."""
        lines, limit = self._lines, self._room.limit
        recent = [line for line in lines.found() if line.at in self._recent]
        for line in recent[:-1]:
            if lines.tokens > limit:
                await self._leave_out(line, NO_ROOM)
        if lines.tokens > limit:
            await self._make_room((recent[-1].tokens if recent else 0) + limit // 2)
        for line in lines.found()[-1:]:
            if lines.tokens > limit and line.tokens > _SHORT:
                await self._cut(line)

    def _droppable(self) -> list[PromptLine]:
        """Return the results that may be left out: outdated ones, then the largest and oldest."""
        count = len(self._lines.shown)
        found = [(at, one) for at, one in enumerate(self._lines.shown) if one.kind == "evidence"]
        old = [line for _, line in found if self._transcript[line.at].stale]
        others = [
            (line.tokens * (count - place), line)
            for place, line in found
            if not self._transcript[line.at].stale and line.at not in self._kept and line.tokens > _SHORT
        ]
        return [*old, *(line for _, line in sorted(others, key=lambda one: -one[0]))]

    async def _leave_out(self, line: PromptLine, reason: str = LEFT_OUT) -> None:
        """Replace a result by a stub, because providers require a result for each call."""
        entry = self._transcript[line.at]
        if line.tokens > _SHORT or entry.stale:
            await self._lines.replace(line, _stub(entry, reason), "stub")

    async def _make_room(self, goal: int) -> None:
        """Leave out even results that should stay, oldest first, except recent ones."""
        self._forget(self._lines.tokens - goal)
        for line in self._lines.found():
            if line.at not in self._recent and self._lines.tokens > goal:
                await self._leave_out(line)

    def _forget(self, over: int) -> None:
        """Remove the oldest exchanges, each as a whole, until `over` tokens are freed."""
        gone: list[PromptLine] = []
        for part in self._lines.exchanges():
            if over <= 0:
                break
            if not any(line.at in self._kept for line in part):
                gone += part
                over -= sum(line.tokens for line in part)
        self._lines.remove(gone)

    async def _cut(self, line: PromptLine) -> None:
        entry, limit = self._transcript[line.at], self._room.limit
        allowed = limit - self._lines.tokens + line.tokens
        letters = allowed * len(line.message.text) // line.tokens
        for _ in range(_TRIES):
            letters = letters * 9 // 10
            text = head_and_tail(entry.text, letters) if letters > _FEW_LETTERS else _stub(entry, NO_ROOM)
            await self._lines.replace(line, text, "evidence")
            if self._lines.tokens <= limit:
                return


def _stub(entry: TranscriptEntry, reason: str) -> str:
    what = entry.text.partition("\n")[0]
    return f"{what}{f', {entry.path}' if entry.path else ''}: {reason}"
