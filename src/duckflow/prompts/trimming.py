"""What is left out of a conversation that has grown too long, and in which order (SPEC F3).

Evidence goes first: old versions of files, then the oldest. Words follow. A large step is taken at once, so
that the beginning of the prompts to come stays the same for long. What the user asked stays, and so does what
was found just now, as far as it fits.
"""

from collections.abc import Sequence

from duckflow.domain.state import Entry
from duckflow.domain.text import head_and_tail
from duckflow.prompts.lines import Line, Lines

LEFT_OUT = "The beginning of this conversation is left out."

_LOOK_AGAIN = "left out, look again if you need it"
_TRIES = 4


async def trim(lines: Lines, transcript: Sequence[Entry], request: str, room: tuple[int, int]) -> bool:
    """Whether something was left out. `room` is the tokens there are for all, and of these for evidence."""
    most, most_evidence = room
    if lines.tokens <= most and lines.evidence <= most_evidence:
        return False
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
        await _forget(lines, newest, request, most // 2)
    await _shorten(lines, transcript, most)
    return True


async def _leave_out(lines: Lines, line: Line, entry: Entry) -> None:
    """A word stays in place of the evidence, so that each answer still follows a question."""
    shown = entry.text.partition("\n")[0] + (f", {entry.path}" if entry.path else "")
    await lines.replace(line, f"{shown}: {_LOOK_AGAIN}", "stub")


async def _forget(lines: Lines, newest: set[int], request: str, goal: int) -> None:
    """Drop the oldest lines until the goal is met."""
    kept = newest | {id(line) for line in lines.pinned(request)}
    over, gone = lines.tokens - goal, list[Line]()
    for line in lines.shown:
        if over <= 0:
            break
        if id(line) not in kept:
            gone.append(line)
            over -= line.tokens
    if gone:
        lines.remove(gone)
        await lines.open_with("words", LEFT_OUT)


async def _shorten(lines: Lines, transcript: Sequence[Entry], most: int) -> None:
    """Where even what was found just now is too much, its last part is cut until it fits."""
    evidence = lines.found()
    for line in evidence[:-1]:
        if lines.tokens > most:
            await _leave_out(lines, line, transcript[line.at])
    for line in evidence[-1:] * _TRIES:
        over = lines.tokens - most
        if over > 0:
            text = line.message.text
            letters = len(text) * max(line.tokens - over, 0) // max(line.tokens, 1)
            await lines.replace(line, head_and_tail(text, letters * 9 // 10), "evidence")
