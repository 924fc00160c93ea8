"""Shortening of texts that an evaluator reads, each with a note about what was left out (J2)."""

from collections.abc import Iterable, Sequence
from itertools import groupby

from duckflow.domain.text import cut, head_and_tail

_HUNK = "@@ "
_LONGEST_LINE = 400
_CONTEXT = 1
"""Unchanged lines to keep on each side of a change when a diff is too long."""

_REMOVED_RUN, _REMOVED_SHOWN = 12, 4
"""Longest run of removed lines that is kept whole, and number of lines that stay of a longer run."""

_LEAST_HUNK = 160

_NOTE = 80


def fair_shares(sizes: Sequence[int], budget: int) -> list[int]:
    """Divide the budget: small items get their full size, and the others share the rest evenly."""
    shares, left = [0] * len(sizes), max(budget, 0)
    for place, (size, at) in enumerate(sorted((size, at) for at, size in enumerate(sizes))):
        shares[at] = min(size, left // (len(sizes) - place))
        left -= shares[at]
    return shares


def narrow(text: str) -> str:
    """Reduce a diff to its changes and the lines next to them; return any other text unchanged."""
    header, hunks = _split(text.split("\n"))
    return "\n".join([*header, *(line for hunk in hunks for line in _around_changes(hunk))])


def _split(lines: Sequence[str]) -> tuple[Sequence[str], list[Sequence[str]]]:
    starts = [at for at, line in enumerate(lines) if line.startswith(_HUNK)]
    ends = (*starts, len(lines))[1:]
    return lines[: starts[0] if starts else None], [lines[a:b] for a, b in zip(starts, ends, strict=True)]


def fold_removed(text: str) -> str:
    """Keep only the start of long runs of removed lines in a diff, because added lines say more."""
    folded: list[str] = []
    for removed, run in groupby(text.split("\n"), key=lambda line: line.startswith("-")):
        lines = list(run)
        if removed and len(lines) > _REMOVED_RUN:
            more = len(lines) - _REMOVED_SHOWN
            lines = [*lines[:_REMOVED_SHOWN], f"… {more} more removed lines …"]
        folded += lines
    return "\n".join(folded)


def shorten(text: str, limit: int) -> str:
    """Shorten a text to about `limit` characters. A diff keeps as many of its changes as fit."""
    if len(text) <= limit:
        return text
    lines, hunks = _split([cut(line, _LONGEST_LINE) for line in text.split("\n")])
    if not hunks:
        return head_and_tail(text, limit)
    header, shown = "\n".join(lines), ["\n".join(_around_changes(hunk)) for hunk in hunks]
    return "\n".join([header, *_fitting(shown, limit - len(header))])


def _fitting(hunks: Sequence[str], room: int) -> Iterable[str]:
    whole = sum(len(one) + 1 for one in hunks) <= room
    count = len(hunks) if whole else max(1, min(len(hunks), room // _LEAST_HUNK))
    shown, left_out = hunks[:count], hunks[count:]
    shares = fair_shares([len(one) + 1 for one in shown], room - (_NOTE if left_out else 0))
    yield from (_cut_hunk(one, share) for one, share in zip(shown, shares, strict=True))
    if left_out:
        lines = [line for one in left_out for line in one.split("\n")]
        yield f"… {len(left_out)} more places left out: {_count(lines)} …"


def _cut_hunk(hunk: str, limit: int) -> str:
    if len(hunk) < limit:
        return hunk
    title, *lines = hunk.split("\n")
    room = (limit - len(title) - _NOTE) // 2
    head = lines_within(lines, room)
    tail = lines_within(lines[:head:-1], room)
    left_out = lines[head : len(lines) - tail]
    return "\n".join([title, *lines[:head], f"… left out: {_count(left_out)} …", *lines[len(lines) - tail :]])


def lines_within(lines: Sequence[str], room: int) -> int:
    """Return how many lines fit into a number of characters."""
    for count, line in enumerate(lines):
        room -= len(line) + 1
        if room < 0:
            return count
    return len(lines)


def _around_changes(hunk: Sequence[str]) -> Iterable[str]:
    changed = [at for at, line in enumerate(hunk) if _sign(line)]
    kept = {near for at in changed for near in range(at - _CONTEXT, at + _CONTEXT + 1)} | {0}
    last = 0
    for at in sorted(kept.intersection(range(len(hunk)))):
        if last and at > last + 1:
            yield f"… {at - last - 1} unchanged lines …"
        last = at
        yield hunk[at]


def _count(lines: Iterable[str]) -> str:
    signs = [_sign(line) for line in lines]
    return f"{signs.count('+')} added and {signs.count('-')} removed lines"


def _sign(line: str) -> str:
    return line[0] if line.startswith(("+", "-")) else ""
