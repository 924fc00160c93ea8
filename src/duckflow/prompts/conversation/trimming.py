"""What is left out of a conversation that has grown too long, and in which order (SPEC F3).

Evidence goes first: old versions of files, then the oldest. Words follow. A large step is taken at once, so
that the beginning of the prompts to come stays the same for long. What the user asked stays, and so does what
was found just now, as far as it fits.
"""

from collections.abc import Sequence

from duckflow.domain.state import TranscriptEntry
from duckflow.domain.text import head_and_tail
from duckflow.prompts.conversation.lines import PromptLine, PromptLines

_SHORT = 40
"""Tokens up to which evidence stays as it is: a word in its place would hardly be shorter."""

_FEW_LETTERS = 200
_TRIES = 4


async def trim(
    lines: PromptLines, transcript: Sequence[TranscriptEntry], request: str, room: tuple[int, int]
) -> None:
    """Leave out a large part. `room` is the tokens there are for all, and of these for evidence."""
    most, most_evidence = room
    newest = {id(line) for line in lines.newest()}
    evidence = lines.found()
    stale = [line for line in evidence if transcript[line.at].stale]
    for line in stale:
        await _leave_out(lines, line, transcript[line.at])
    for line in (line for line in evidence if id(line) not in newest and line.kind == "evidence"):
        if lines.tokens <= most // 2 and lines.evidence <= most_evidence // 2:
            break
        await _leave_out(lines, line, transcript[line.at])
    if lines.tokens > most * 3 // 4:
        _forget(lines, newest, request, most // 2)


async def _leave_out(lines: PromptLines, line: PromptLine, entry: TranscriptEntry) -> None:
    """A word stays in place of the evidence, so that each answer still follows a question."""
    if line.tokens > _SHORT or entry.stale:
        await lines.replace(line, _stub(entry), "stub")


def _stub(entry: TranscriptEntry) -> str:
    what = entry.text.partition("\n")[0]
    return f"{what}{f', {entry.path}' if entry.path else ''}: left out, look again if you need it"


def _forget(lines: PromptLines, newest: set[int], request: str, goal: int) -> None:
    """Drop the oldest lines until the goal is met."""
    kept = newest | {id(line) for line in lines.pinned(request)}
    over, gone = lines.tokens - goal, list[PromptLine]()
    for line in lines.shown:
        if over <= 0:
            break
        if id(line) not in kept:
            gone.append(line)
            over -= line.tokens
    lines.remove(gone)


async def shorten(lines: PromptLines, transcript: Sequence[TranscriptEntry], most: int) -> None:
    """Where even what was found just now is too much, its last part is cut until it fits."""
    evidence = lines.found()
    for line in evidence[:-1]:
        if lines.tokens > most:
            await _leave_out(lines, line, transcript[line.at])
    for line in evidence[-1:]:
        if lines.tokens > most:
            await _cut(lines, line, transcript[line.at], most)


async def _cut(lines: PromptLines, line: PromptLine, entry: TranscriptEntry, most: int) -> None:
    allowed = most - lines.tokens + line.tokens
    letters = allowed * len(line.message.text) // line.tokens
    for _ in range(_TRIES):
        letters = letters * 9 // 10
        text = head_and_tail(entry.text, letters) if letters > _FEW_LETTERS else _stub(entry)
        await lines.replace(line, text, "evidence")
        if lines.tokens <= most:
            return
