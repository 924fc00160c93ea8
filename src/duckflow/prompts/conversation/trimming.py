"""Trimming of a conversation that has grown too long (F3).

Results are left out first: outdated ones, then the largest and oldest. Messages follow. Each trim removes a
lot, so that the beginning of later prompts stays the same for a long time. The user's request, the results of
the last two loops and the request's own changes stay, as far as the window can hold them.
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from duckflow.domain.frozen import Frozen
from duckflow.domain.state import AgentState, TranscriptEntry
from duckflow.domain.text import head_and_tail
from duckflow.prompts.conversation.lines import PromptLine, PromptLines

KEPT_LOOPS = 2
"""Number of recent loops whose results are always kept."""

_SHORT = 40
"""Results up to this many tokens stay as they are, because a stub would hardly be shorter."""

_WORTH = 8
"""A trim must free an eighth of the room, because each one changes the beginning of every later prompt."""

_FEW_LETTERS = 200
_TRIES = 4

LEFT_OUT = "left out, look again if you need it"
NO_ROOM = "left out, for all that was found at once does not fit: look again, at less at a time"


class Room(NamedTuple):
    """Tokens that a conversation may take: it is trimmed beyond `most`, and never exceeds `limit`."""

    most: int
    limit: int


class Untouchable(Frozen):
    """Transcript indexes of the entries that a trim must keep."""

    recent: frozenset[int] = frozenset()
    """Results of the last loops."""
    changed: frozenset[int] = frozenset()
    """Results that show what the request changed."""
    words: frozenset[int] = frozenset()
    """Messages since the last answer, the request, and the user's last message."""

    @property
    def all(self) -> frozenset[int]:
        """All entries that must be kept."""
        return self.recent | self.changed | self.words


def untouchable(lines: PromptLines, state: AgentState) -> Untouchable:
    """Return the entries that must be kept now."""
    request = state.request.text if state.request else ""
    pinned = lines.pinned(request)
    begun = pinned[0].at if request and pinned else 0
    recent = {line.at for line in lines.recent_results(KEPT_LOOPS)}
    changed = {at for at, entry in enumerate(state.transcript) if _shows_change(entry, at, begun, state)}
    ids = {entry.evidence_id: at for at, entry in enumerate(state.transcript) if entry.evidence_id}
    meant = {ids[one] for at in recent if (one := state.transcript[at].same_as) in ids}
    newest = {line.at for line in lines.newest()}
    return Untouchable(
        recent=frozenset(recent | meant),
        changed=frozenset(changed),
        words=frozenset(newest | {line.at for line in pinned}),
    )


def _shows_change(entry: TranscriptEntry, at: int, begun: int, state: AgentState) -> bool:
    """Return True if a result reports a change by this request, or shows a file after such a change."""
    if not state.request or at < begun or entry.path not in state.request.changed or entry.stale:
        return False
    return entry.supports == "change" or entry.digest is not None


def droppable(lines: PromptLines, state: AgentState, keep: Untouchable) -> list[PromptLine]:
    """Return the results that may be left out, in the order of removal."""
    transcript, count = state.transcript, len(lines.shown)
    kept = keep.all
    old: list[PromptLine] = []
    others: list[tuple[int, PromptLine]] = []
    for place, line in enumerate(lines.shown):
        if line.kind != "evidence":
            continue
        if transcript[line.at].stale:
            old.append(line)
        elif line.at not in kept and line.tokens > _SHORT:
            others.append((line.tokens * (count - place), line))
    return [*old, *(line for _, line in sorted(others, key=lambda one: -one[0]))]


def worth_a_step(lines: PromptLines, going: Collection[PromptLine], keep: Untouchable, room: Room) -> bool:
    """Return True if a trim is due: the hard limit is exceeded, or it is too long and enough can go."""
    if lines.tokens > room.limit:
        return True
    wins = sum(line.tokens for line in going)
    if lines.words > room.most // 2:
        kept = keep.all
        wins += sum(line.tokens for line in lines.shown if line.kind != "evidence" and line.at not in kept)
    return lines.tokens > room.most and wins > room.most // _WORTH


async def trim(
    lines: PromptLines, state: AgentState, going: Sequence[PromptLine], keep: Untouchable, room: Room
) -> None:
    """Leave out outdated results, then others down to half of the room, then messages if they exceed half."""
    for line in going:
        entry = state.transcript[line.at]
        if entry.stale or lines.tokens > room.most // 2:
            await _leave_out(lines, line, entry)
    if lines.words > room.most // 2:
        _forget(lines, keep, lines.words - room.most // 4)
    needed = sum(line.tokens for line in lines.shown if line.at in keep.recent | keep.words)
    if lines.tokens > room.limit >= needed:
        await _make_room(lines, state, keep, room.most * 3 // 4)


async def _leave_out(
    lines: PromptLines, line: PromptLine, entry: TranscriptEntry, reason: str = LEFT_OUT
) -> None:
    """Replace a result by a stub, so that each call keeps its result and each answer its question."""
    if line.tokens > _SHORT or entry.stale:
        await lines.replace(line, _stub(entry, reason), "stub")


def _stub(entry: TranscriptEntry, reason: str) -> str:
    what = entry.text.partition("\n")[0]
    return f"{what}{f', {entry.path}' if entry.path else ''}: {reason}"


async def _make_room(lines: PromptLines, state: AgentState, keep: Untouchable, goal: int) -> None:
    """Leave out even entries that should stay, oldest first, except recent results and the user's words."""
    _forget(lines, keep, lines.tokens - goal)
    for line in lines.found():
        if line.at not in keep.recent and lines.tokens > goal:
            await _leave_out(lines, line, state.transcript[line.at])


def _forget(lines: PromptLines, keep: Untouchable, over: int) -> None:
    """Remove the oldest exchanges, each as a whole, until `over` tokens are freed."""
    gone: list[PromptLine] = []
    kept = keep.all
    for part in lines.exchanges():
        if over <= 0:
            break
        if not any(line.at in kept for line in part):
            gone += part
            over -= sum(line.tokens for line in part)
    lines.remove(gone)


async def shorten(lines: PromptLines, state: AgentState, keep: Untouchable, most: int) -> None:
    """If the results of the last loops alone are too long, leave out the oldest of them and cut the last."""
    recent = [line for line in lines.found() if line.at in keep.recent]
    for line in recent[:-1]:
        if lines.tokens > most:
            await _leave_out(lines, line, state.transcript[line.at], NO_ROOM)
    if lines.tokens > most:
        last = recent[-1].tokens if recent else 0
        await _make_room(lines, state, keep, last + most // 2)
    for line in lines.found()[-1:]:
        if lines.tokens > most and line.tokens > _SHORT:
            await _cut(lines, line, state.transcript[line.at], most)


async def _cut(lines: PromptLines, line: PromptLine, entry: TranscriptEntry, most: int) -> None:
    allowed = most - lines.tokens + line.tokens
    letters = allowed * len(line.message.text) // line.tokens
    for _ in range(_TRIES):
        letters = letters * 9 // 10
        text = head_and_tail(entry.text, letters) if letters > _FEW_LETTERS else _stub(entry, NO_ROOM)
        await lines.replace(line, text, "evidence")
        if lines.tokens <= most:
            return
