"""When a loop only repeats what was there: by its actions and their results, never by words (SPEC H3).

Batch work is no repetition: the same tool on other files is another call, and the same command after an
edit meets another workspace. What the user says is a new beginning; nothing before it counts.
"""

from collections.abc import Sequence
from typing import Literal

from duckflow.domain.pacing.limits import LoopTrace, PastAction
from duckflow.domain.patterns import late
from duckflow.pacemaker.trace import came_back

Sign = Literal["repeated", "alternating", "back_and_forth", "seen", "announced", "failing", "same_plan"]

IDLE: tuple[Sign, ...] = ("announced", "same_plan")
"""Signs that nothing is done: the thread is lost, and no action is repeated."""

LOOK_BACK = 4
"""With how many earlier loops a loop is compared."""

SAME_FAILURES = 3
"""The how-manieth same failure is a sign."""

ALIKE = 0.6
"""The share of words two plans have in common when they are the same plan in other words."""

_WORD = late(r"[^\W_]+(?:[./_-]+[^\W_]+)*")
_NAME = late(r"[./_]")
_UNSPACED = late(r"[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


def find_signs(history: Sequence[LoopTrace], now: LoopTrace) -> tuple[Sign, ...]:
    """All signs that this loop got nowhere; `history` are the traces before it, oldest first."""
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
    """The traces since the user last spoke."""
    if now.fresh:
        return ()
    start = max((place for place, trace in enumerate(history) if trace.fresh), default=0)
    return tuple(history[start:])


def same_plan(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two plans say the same: the same names in them, and most of the words."""
    first, second = _words(one), _words(other)
    together = first | second
    if not together or _names(first) != _names(second):
        return False
    return len(first & second) / len(together) >= ALIKE


def _repeats(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """One of the last four lists again, with the same result, and the workspace as it was."""
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
    """Whether the second time is but the first again.

    A command that changed something meets another workspace the next time. The same edit makes no sense
    twice, nor does the same write: that the file has this content already is the result it had before.
    """
    if earlier.changed and not earlier.on_file:
        return False
    return earlier.result == now.result or (earlier.changed and not now.failed)


def _alternates(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """A-B-A-B, each with the result it had before; so undoing and redoing is found too."""
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
    """A file that was put back is put back once more, with nothing new written to it in between.

    To try something and take it back, or to return to the better of two versions, is honest work.
    """
    earlier = [act for trace in before for act in trace.acts]
    for act in now.acts:
        own = [one for one in earlier if one.after and one.target == act.target]
        if act.after and own and came_back(own, act) and came_back(own[:-1], own[-1]):
            return True
    return False


def _sees_nothing_new(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Twice in a row nothing but looks into files, at lines that were all seen before."""
    if now.disturbed or not before or before[-1].gains or not _only_reads(before[-1]):
        return False
    return not now.gains and _only_reads(now)


def _only_reads(trace: LoopTrace) -> bool:
    return bool(trace.acts) and all(act.version and not act.changed for act in trace.acts)


def _only_announces(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Twice in a row going on without an action; a third time even if something was noted meanwhile."""
    if not _idles(now) or not before or not _idles(before[-1]):
        return False
    third = len(before) > 1 and _idles(before[-2])
    return third or not _moves(before, now)


def _idles(trace: LoopTrace) -> bool:
    return trace.idle and not trace.disturbed


def _moves(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """Whether the loop took another step, or noted or planned something that was not there."""
    known = {note for trace in before for note in trace.noted}
    new_plan = bool(now.plan) and not any(same_plan(now.plan, trace.plan) for trace in before)
    return now.stepped or new_plan or any(note not in known for note in now.noted)


def _fails_again(before: Sequence[LoopTrace], now: LoopTrace) -> bool:
    """The same failure on the same target a third time, without a success in between."""
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
    """Nothing done but a plan, and that one in other words, with no progress since it was first made."""
    if not _idles(now):
        return False
    for earlier in reversed(before[-LOOK_BACK:]):
        if earlier.progressed:
            return False
        if same_plan(now.plan, earlier.plan):
            return True
    return False


def _words(plan: Sequence[str]) -> frozenset[str]:
    """Words and names; of scripts without spaces, pairs of characters."""
    text = " ".join(plan).casefold()
    runs = _UNSPACED.findall(text)
    pairs = {run[at : at + 2] for run in runs for at in range(max(len(run) - 1, 1))}
    return frozenset(pairs) | frozenset(_WORD.findall(_UNSPACED.sub(" ", text)))


def _names(words: frozenset[str]) -> frozenset[str]:
    """What looks like a file or an identifier."""
    return frozenset(word for word in words if _NAME.search(word))
