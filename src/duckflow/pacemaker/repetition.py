"""Detects loops that repeat earlier loops, by their actions and results and not by words (H3).

The same tool on other files, or the same command after an edit, is not repetition. Loops are compared only
since the user's last message.
"""

from collections.abc import Sequence
from typing import Literal

from duckflow.domain.pacing.limits import LoopTrace, PastAction
from duckflow.domain.patterns import lazy_regex
from duckflow.pacemaker.trace import came_back

Sign = Literal["repeated", "alternating", "back_and_forth", "seen", "announced", "failing", "same_plan"]

IDLE: tuple[Sign, ...] = ("announced", "same_plan")
"""Signs that the model does nothing, although it repeats no action."""

LOOK_BACK = 4
"""Number of earlier loops to compare a loop with."""

SAME_FAILURES = 3
"""Number of equal failures that count as a sign."""

ALIKE = 0.6
"""Share of common words from which on two plans count as the same."""

_WORD = lazy_regex(r"[^\W_]+(?:[./_-]+[^\W_]+)*")
_NAME = lazy_regex(r"[./_]")
_UNSPACED = lazy_regex(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def find_signs(history: Sequence[LoopTrace], now: LoopTrace) -> tuple[Sign, ...]:
    """Return all signs that a loop made no progress. `history` has the earlier loops, oldest first."""
    if any(act.declined for act in now.acts):
        return ()
    before = since_user(history, now)
    checks: dict[Sign, bool] = {
        "repeated": _repeats(before, now),
        "alternating": _alternates(before, now),
        "back_and_forth": _goes_back_and_forth(before, now),
        "seen": _sees_nothing_new(before, now),
        "announced": _only_announces(before, now),
        "failing": _fails_again(before, now),
        "same_plan": _plans_the_same(before, now),
    }
    return tuple(sign for sign, found in checks.items() if found)


def since_user(history: Sequence[LoopTrace], now: LoopTrace) -> tuple[LoopTrace, ...]:
    """Return the loops since the user's last message."""
    if now.fresh:
        return ()
    start = max((place for place, trace in enumerate(history) if trace.fresh), default=0)
    return tuple(history[start:])


def same_plan(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two plans are the same: they have the same names and mostly the same words."""
    first, second = _words(one), _words(other)
    together = first | second
    if not together or _names(first) != _names(second):
        return False
    return len(first & second) / len(together) >= ALIKE


def _repeats(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect the same actions and results as in one of the last four loops, in an unchanged workspace."""
    if not now.calls or now.disturbed:
        return False
    for earlier in reversed(before[-LOOK_BACK:]):
        same_length = len(earlier.acts) == len(now.acts)
        if earlier.calls == now.calls and same_length and all(map(_same_act, earlier.acts, now.acts)):
            return True
        if earlier.changed or earlier.disturbed:
            return False
    return False


def _same_act(earlier: PastAction, now: PastAction) -> bool:
    """Return whether an action repeats an earlier one. Commands that change something count as new."""
    if earlier.changed and not earlier.on_file:
        return False
    return earlier.result == now.result or (earlier.changed and not now.failed)


def _alternates(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect loops A-B-A-B with equal results, which includes undoing and redoing a change."""
    if len(before) < 3:
        return False
    first, second, third = before[-3:]
    if any(trace.disturbed for trace in (second, third, now)) or third.calls == now.calls:
        return False
    return _same_loop(first, third) and _same_loop(second, now)


def _same_loop(one: LoopTrace, other: LoopTrace) -> bool:
    results = ([act.result for act in one.acts], [act.result for act in other.acts])
    return bool(one.calls) and one.calls == other.calls and results[0] == results[1]


def _goes_back_and_forth(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect a file that is restored a second time. Restoring it once is legitimate."""
    earlier = [act for trace in before for act in trace.acts]
    for act in now.acts:
        own = [one for one in earlier if one.after and one.target == act.target]
        if act.after and own and came_back(own, act) and came_back(own[:-1], own[-1]):
            return True
    return False


def _sees_nothing_new(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect two loops in a row that only read lines which the model has already seen."""
    if now.disturbed or not before or before[-1].gains or not _only_reads(before[-1]):
        return False
    return not now.gains and _only_reads(now)


def _only_reads(trace: LoopTrace) -> bool:
    return bool(trace.acts) and all(act.version and not act.changed for act in trace.acts)


def _only_announces(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect loops without actions: two in a row that note nothing new, or three in a row."""
    if not _idles(now) or not before or not _idles(before[-1]):
        return False
    third = len(before) > 1 and _idles(before[-2])
    return third or not _moves(before, now)


def _idles(trace: LoopTrace) -> bool:
    return trace.idle and not trace.disturbed


def _moves(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    known = {note for trace in before for note in trace.noted}
    new_plan = bool(now.plan) and not any(same_plan(now.plan, trace.plan) for trace in before)
    return now.stepped or new_plan or any(note not in known for note in now.noted)


def _fails_again(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect the third equal failure on one target, without a success in between."""
    acts = [act for trace in (*before, now) for act in trace.acts]
    last = now.acts[-1] if now.acts else None
    if last is None:
        return False
    count = 0
    for act in reversed(acts):
        if (act.operation, act.target) != (last.operation, last.target) or act.refused:
            continue
        if not act.failed:
            break
        count += act.result == last.result
    return count >= SAME_FAILURES


def _plans_the_same(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Detect a loop that only restates an earlier plan in other words, without progress in between."""
    if not _idles(now):
        return False
    for earlier in reversed(before[-LOOK_BACK:]):
        if earlier.progressed:
            return False
        if same_plan(now.plan, earlier.plan):
            return True
    return False


def _words(plan: Sequence[str]) -> frozenset[str]:
    """Return the words in a plan; for scripts without spaces, pairs of characters."""
    text = " ".join(plan).casefold()
    runs = _UNSPACED.findall(text)
    pairs = {run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1))}
    return frozenset(pairs) | frozenset(_WORD.findall(_UNSPACED.sub(" ", text)))


def _names(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in words if _NAME.search(word))
