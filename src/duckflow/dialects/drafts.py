"""Drafts of a file by a small model: drawn one by one, cut where they begin to go round, chosen by checks.

The first is greedy. If the program's checks find something wrong with it, others are drawn with a temperature
and a seed of their own, and the one that passes most checks is taken (J11).
"""

from collections.abc import Awaitable, Callable
from itertools import takewhile
from time import monotonic
from typing import NamedTuple

from duckflow.dialects.compact_prompt import ContentPrompt
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelClient, ModelRequest, Usage
from duckflow.domain.patterns import late
from duckflow.llm.answers.response import collect

_TEMPERATURE = 0.8
_LOOKED_AT = 100
"""Characters after which a text is looked at again."""
_LOOKED_BACK = 6_000
"""Characters of the end of a text in which a repetition is looked for."""
_LONG_ROUND, _SHORT_ROUNDS, _SHORT_TOTAL = 300, 4, 800
"""Two rounds of a long passage are no accident; of a short one there must be more: tables have equal rows."""
_CALL, _NUMBER = late(r"([A-Za-z_][\w.]*)\("), late(r"\d+")
_MOST_CALLS, _KEPT_CALLS, _FORMS = 12, 3, 3
"""So many calls below each other, in so few forms but for their numbers, are examples without end."""


class DraftCheck(Frozen):
    """How many checks of a draft failed and passed; `doubts` are failures that bind nobody."""

    failed: int = 0
    passed: int = 0
    doubts: int = 0

    @property
    def rank(self) -> tuple[int, int, int]:
        """Higher is better: fewer failures first, then more that passed, then fewer doubts."""
        return -self.failed, self.passed, -self.doubts


class DraftLimits(Frozen):
    """How many drafts of a file may be made, and for how long after the first."""

    most: int = 4
    seconds: float = 60.0


class _Draft(NamedTuple):
    content: str
    checked: DraftCheck


async def draft(
    client: ModelClient,
    wanted: ModelRequest,
    prompt: ContentPrompt,
    check: Callable[[str], Awaitable[DraftCheck]],
    limits: DraftLimits,
    *,
    failed_attempts: int,
    current: str | None,
    must_change: bool,
) -> tuple[str | None, Usage]:
    """The best of the drafts made, None if not one was whole.

    No further one is made once one has nothing wrong with it, or enough were made. Where the file must
    change, as after a failed attempt, what it holds already is only taken if there is nothing else.
    """
    drafts: list[_Draft] = []
    unchanged: str | None = None
    usage, start = Usage(), monotonic()
    for number in range(limits.most):
        if number and monotonic() - start > limits.seconds:
            break
        drawn = failed_attempts * limits.most + number
        asked = replace(wanted, temperature=_TEMPERATURE, seed=drawn) if drawn else wanted
        response = await collect(client, asked, lambda _: None, has_reply=False, until=_watch())
        usage += response.usage
        end = first_round(response.text)
        if response.stop != "end" and end is None:
            continue
        content = inside_fence(response.text[:end], prompt)
        if (must_change or failed_attempts) and content == current:
            unchanged = content
            continue
        if content in (one.content for one in drafts):
            continue
        drafts.append(_Draft(content, await check(content)))
        if not drafts[-1].checked.failed:
            break
    best = max(drafts, key=lambda one: one.checked.rank, default=None)
    return best.content if best else unchanged, usage


def first_round(text: str) -> int | None:
    """Where the first round ends of a passage that a text repeats up to its end; None if it does not.

    A small model that has lost its way writes the same lines until its tokens are used up. What it wrote
    before it lost its way is often right.
    """
    tail = text[: -_LOOKED_BACK - 1 : -1]
    # For each length, the longest part at the end of the text that is there twice, one shifted (its border).
    borders = [0] * len(tail)
    found: tuple[int, int] | None = None
    for at in range(1, len(tail)):
        border = borders[at - 1]
        while border and tail[at] != tail[border]:
            border = borders[border - 1]
        borders[at] = border + (tail[at] == tail[border])
        length = at + 1
        period = length - borders[at]
        long = period >= _LONG_ROUND and length >= 2 * period
        if long or length >= max(_SHORT_ROUNDS * period, _SHORT_TOTAL):
            found = length, period
    if found is None:
        return _third_example(text)
    length, period = found
    end = text.find("\n", len(text) - length + period)  # whole lines: the next round has the rest of the last
    return end if end >= 0 else len(text) - length + period


def _third_example(text: str) -> int | None:
    """Where the third line ends of many that call the same with other numbers, up to the end of the text."""
    *lines, last = text.split("\n")
    called = _CALL.match(lines[-1]) if lines else None
    if called is None:
        return None
    run = list(takewhile(lambda line: line.startswith(called[0]), reversed(lines)))
    if len(run) < _MOST_CALLS or len({_NUMBER.sub("0", line) for line in run}) > _FORMS:
        return None
    return len(text) - len(last) - sum(len(line) + 1 for line in run[:-_KEPT_CALLS]) - 1


def inside_fence(text: str, prompt: ContentPrompt) -> str:
    """The content itself, whether or not the model repeated the opening it was given."""
    fence = prompt.closing.strip()
    stripped = text.lstrip("\n")
    if stripped.startswith(fence):
        stripped = stripped.partition("\n")[2]
    body = stripped.partition(prompt.closing)[0] if not stripped.startswith(fence) else ""
    return f"{body.rstrip()}\n" if body.strip() else ""


def _watch() -> Callable[[str], bool]:
    """Tells of a growing text whether it goes round; it is looked at now and then."""
    looked = 0

    def goes_round(text: str) -> bool:
        nonlocal looked
        if len(text) - looked < _LOOKED_AT:
            return False
        looked = len(text)
        return first_round(text) is not None

    return goes_round
