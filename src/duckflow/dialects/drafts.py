"""Versions of a file ("drafts") that a small model samples one by one; the program's checks choose one.

The first draft is greedy. If the checks find a fault in it, more are sampled with a temperature and different
seeds, and the draft that passes most checks is used (J11). A draft that starts to repeat itself is cut.
"""

from collections.abc import Awaitable, Callable, Collection
from itertools import takewhile
from time import monotonic

from duckflow.dialects.compact_prompt import ContentPrompt, with_blank_lines
from duckflow.dialects.dialect import OnUpdate
from duckflow.domain.frozen import Frozen, replace
from duckflow.domain.model import ModelClient, ModelRequest, Usage
from duckflow.domain.patterns import lazy_regex
from duckflow.llm.answers.response import collect

_TEMPERATURE = 0.8
_LOOKED_AT = 100
"""Number of new characters after which a growing text is searched for a repetition again."""
_LOOKED_BACK = 6_000
"""Number of characters at the end of a text that are searched."""
_LONG_ROUND, _SHORT_ROUNDS, _SHORT_TOTAL = 300, 4, 800
"""Two copies of a long passage count as a loop. Short ones, like table rows, must repeat more often."""
_CALL, _NUMBER = lazy_regex(r"([A-Za-z_][\w.]*)\("), lazy_regex(r"\d+")
_MOST_CALLS, _KEPT_CALLS, _FORMS = 12, 3, 3
"""A dozen consecutive lines that call one function and differ mostly in numbers count as a loop."""


class DraftCheck(Frozen):
    """Number of failed and passed checks of a draft; `doubts` are failures that do not count as faults."""

    failed: int = 0
    passed: int = 0
    doubts: int = 0

    @property
    def rank(self) -> tuple[int, int, int]:
        """Sort key, higher is better: fewer failures, then more passed checks, then fewer doubts."""
        return -self.failed, self.passed, -self.doubts


class DraftLimits(Frozen):
    """Maximum number of drafts of a file, and the seconds after which no new one is begun."""

    most: int = 4
    seconds: float = 60.0


async def draft(
    client: ModelClient,
    wanted: ModelRequest,
    prompt: ContentPrompt,
    check: Callable[[str], Awaitable[DraftCheck]],
    limits: DraftLimits,
    *,
    failed_attempts: int,
    path: str,
    current: str | None,
    must_change: bool,
    is_unchanged: Callable[[str], bool] | None = None,
    may_be_empty: bool = False,
    avoided: Collection[str] = (),
    on_update: OnUpdate = lambda _: None,
) -> tuple[str | None, Usage]:
    """Return the best draft (None if none was complete) and the usage of all drafts.

    Sampling stops once a draft has no fault or the limits are reached. After an unusable draft there is a
    second one even if the time is over. If the file must change, as after a failed attempt, a draft equal to
    its current content is used only if there is no other; `is_unchanged` tells which ones count as equal.
    The `avoided` contents, which the user refused, are never used.
    """
    from duckflow.dialects.missing_imports import with_imports  # noqa: PLC0415 - only for small models

    drafts: dict[str, DraftCheck] = {}
    unchanged: str | None = None
    usage, start = Usage(), monotonic()
    for number in range(limits.most):
        if number and monotonic() - start > limits.seconds and (drafts or number > 1):
            break
        drawn = failed_attempts * limits.most + number
        asked = replace(wanted, temperature=_TEMPERATURE, seed=drawn) if drawn else wanted
        response = await collect(client, asked, on_update, until=watch_for_loop())
        usage += response.usage
        end = first_round(response.text)
        if response.stop != "end" and end is None:
            continue
        content = with_blank_lines(current, inside_fence(prompt.beginning + response.text[:end], prompt))
        content = with_imports(path, content)
        if (must_change or failed_attempts) and (
            content == current or (is_unchanged and is_unchanged(content))
        ):
            unchanged = content
            continue
        if content in drafts or content in avoided or not (content or may_be_empty):
            continue
        drafts[content] = await check(content)
        if not drafts[content].failed:
            break
    return max(drafts, key=lambda content: drafts[content].rank, default=unchanged), usage


def first_round(text: str) -> int | None:
    """Return the end of the first copy of a passage that repeats up to the end of the text, or None."""
    tail = text[: -_LOOKED_BACK - 1 : -1]
    # For each prefix of the reversed tail, find its longest border: a shorter prefix that is also its suffix.
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
    end = text.find("\n", len(text) - length + period)  # end with a whole line
    return end if end >= 0 else len(text) - length + period


def _third_example(text: str) -> int | None:
    """If a text ends with many calls that differ only in numbers, return the end of the third, else None."""
    *lines, last = text.split("\n")
    called = _CALL.match(lines[-1]) if lines else None
    if called is None:
        return None
    run = list(takewhile(lambda line: line.startswith(called[0]), reversed(lines)))
    if len(run) < _MOST_CALLS or len({_NUMBER.sub("0", line) for line in run}) > _FORMS:
        return None
    return len(text) - len(last) - sum(len(line) + 1 for line in run[:-_KEPT_CALLS]) - 1


def inside_fence(text: str, prompt: ContentPrompt) -> str:
    """Return the content without the code fence, which the model may have opened again."""
    fence = prompt.closing.strip()
    stripped = text.lstrip("\n")
    if stripped.startswith(fence):
        stripped = stripped.partition("\n")[2]
    body = stripped.partition(prompt.closing)[0] if not stripped.startswith(fence) else ""
    lines = body.rstrip().split("\n")
    if lines[-1].strip() == "```" and sum(line.lstrip().startswith("```") for line in lines) % 2:
        lines.pop()  # the model closed the fence of Markdown with three backticks instead of four
    body = "\n".join(lines).rstrip()
    return f"{body}\n" if body else ""


def watch_for_loop() -> Callable[[str], bool]:
    """Return a function that examines a growing text at intervals; True once it has started to repeat."""
    looked = 0

    def goes_round(text: str) -> bool:
        nonlocal looked
        if len(text) - looked < _LOOKED_AT:
            return False
        looked = len(text)
        return first_round(text) is not None

    return goes_round
