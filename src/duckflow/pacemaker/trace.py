"""Summarizes the events of one loop as a trace: its actions, and whether they made progress."""

from collections.abc import Iterable, Sequence

from duckflow.domain.decision import Action, StateDelta
from duckflow.domain.events import (
    ActionFinished,
    ActionStarted,
    ApprovalAnswered,
    ConsultationAnswered,
    DecisionMade,
    Event,
    TaskFinished,
    Transition,
    UserMessage,
)
from duckflow.domain.pacing.limits import LoopTrace, PastAction, call_of, digest_of
from duckflow.domain.pacing.vitals import FocusEvent
from duckflow.domain.patterns import lazy_regex
from duckflow.domain.reduce.items import COUNTS, SHORT
from duckflow.domain.text import cut

RECENT = 3
"""Number of newest loops in which progress counts as recent."""

_UNSEEN = 100

# Text that differs between runs with the same result: times, addresses, ids, temporary files.
_PASSING = lazy_regex(
    r"""(?x)
    \d{4}-\d\d-\d\d(?:[T\ ]\d\d:\d\d(?::\d\d(?:[.,]\d++)?)?Z?)?
    | (?<!\d)\d\d?:\d\d:\d\d(?:[.,]\d++)?
    | (?<![\d.,])\d++(?:[.,]\d++)?\s?(?:[nuµμm]?s|secs?|seconds?|秒)(?![A-Za-z])
    | \b0x[0-9a-fA-F]++
    | \b(?:plan|step|task|list)_[0-9a-f]{8}\b
    | \[e\d++\]
    | (?:/private)?/(?:tmp|var/folders)/[^\s'":,)]++
    """
)


def trace_loop(history: Sequence[LoopTrace], events: Sequence[Event], *, rose: bool = False) -> LoopTrace:
    """Return the trace of a loop, from all events since the last loop. `rose`: the evaluation improved."""
    place = max((at for at, event in enumerate(events) if isinstance(event, DecisionMade)), default=0)
    before, own = events[:place], events[place:]
    decision = next((event.decision for event in own if isinstance(event, DecisionMade)), None)
    delta = decision.state_delta if decision else StateDelta()
    noted = {"goal": delta.goal, "constraints": delta.constraints, "open_questions": delta.open_questions}
    started = [one.action for one in own if isinstance(one, ActionStarted) and one.task_id is None]
    acts = tuple(_acts(own))
    fresh = any(map(_is_guidance, before))
    unseen = history[-1].unseen if history else ()
    foreign = not fresh and bool(_shown(before).difference(unseen))
    gains = tuple(_gains(history, acts, events))
    return LoopTrace(
        calls=tuple(map(call_of, decision.actions if decision else started)),
        acts=acts,
        fresh=fresh,
        disturbed=foreign
        or any(isinstance(one, ActionFinished | TaskFinished) and one.task_id for one in events),
        unseen=_unseen(unseen, events),
        idle=decision is not None and decision.next_step == "continue" and not decision.actions,
        stepped=any(isinstance(event, Transition) and event.by == "model" for event in own),
        noted=tuple(digest_of(f"{name} {value}") for name, value in noted.items() if value),
        plan=tuple(cut(line, SHORT) for line in (delta.plan_brief or ())[: COUNTS["plan_brief"]]),
        gains=gains,
        progressed=bool(gains) or rose,
    )


def _is_guidance(event: Event) -> bool:
    """Return whether the user said how to continue: in a message, an answer, or by refusing an action."""
    refused = isinstance(event, ApprovalAnswered) and not event.yes
    return refused or isinstance(event, UserMessage | ConsultationAnswered)


def progressed_lately(history: Sequence[LoopTrace]) -> bool:
    """Return whether one of the last three loops made progress (I7)."""
    return any(trace.progressed for trace in history[-RECENT:])


def without_noise(text: str) -> str:
    """Replace the parts of a result that differ from run to run, such as times."""
    return _PASSING.sub("·", text).strip()


def _acts(own: Sequence[Event]) -> Iterable[PastAction]:
    started = {event.action_id: event.action for event in own if isinstance(event, ActionStarted)}
    for event in own:
        if isinstance(event, ActionFinished) and event.task_id is None:
            action = started.get(event.action_id)
            first, end = _lines_shown(event, action)
            before, after = _contents(event)
            yield PastAction(
                call=call_of(action) if action else digest_of(event.operation),
                operation=event.operation,
                target=event.path or event.operation,
                result=_result(event),
                failed=event.outcome in ("failed", "unknown"),
                refused=event.outcome == "refused",
                declined=event.declined is not None,
                changed=bool(event.changed),
                on_file=event.path is not None,
                version=digest_of(event.digest) if event.digest else "",
                first=first,
                end=end,
                before=before,
                after=after,
            )


def _result(event: ActionFinished) -> str:
    """Return a hash of the result. If a file was changed, only the outcome counts, as the text varies."""
    if event.changed and event.path is not None:
        return digest_of(f"{event.outcome} changed")
    return digest_of(f"{event.outcome} {event.digest or without_noise(event.text)}")


def _lines_shown(event: ActionFinished, action: Action | None) -> tuple[int, int]:
    """Return the lines that a read showed: the first one, and the one after the last. (0, 0) if unknown."""
    start = action.args.get("start") if action else None
    first = start if isinstance(start, int) else 1
    return (first, first + event.text.count("\n")) if event.digest else (0, 0)


def _contents(event: ActionFinished) -> tuple[str, str]:
    own = [change for change in event.changes if change.path == event.path]
    if len(own) != 1:
        return "", ""
    return digest_of(own[0].before or ""), digest_of(own[0].after or "")


def _shown(events: Sequence[Event]) -> set[str]:
    return {
        event.path for event in events if isinstance(event, ActionFinished) and event.path and event.digest
    }


def _unseen(known: Sequence[str], events: Sequence[Event]) -> tuple[str, ...]:
    unseen = dict.fromkeys(known)
    for event in events:
        if isinstance(event, ActionFinished):
            unseen |= dict.fromkeys(event.changed)
        for path in _shown((event,)):
            unseen.pop(path, None)
    return tuple(unseen)[-_UNSEEN:]


def _gains(
    history: Sequence[LoopTrace], acts: Sequence[PastAction], events: Sequence[Event]
) -> Iterable[FocusEvent]:
    if any(isinstance(event, TaskFinished) and event.status == "completed" for event in events):
        yield "task_finished"
    earlier = [act for trace in history for act in trace.acts]
    if any(act.changed and not came_back(earlier, act) for act in acts):
        yield "new_content"
    looks = (act for act in acts if not (act.failed or act.refused or act.changed))
    if any(shows_more(earlier, act) for act in looks):
        yield "new_evidence"


def came_back(earlier: Sequence[PastAction], act: PastAction) -> bool:
    """Return whether a change restored an earlier state, by repeating a call or restoring content."""
    if any(one.changed and one.call == act.call for one in earlier):
        return True
    had = {content for one in earlier if one.target == act.target for content in (one.before, one.after)}
    return bool(act.after) and act.after in had


def shows_more(earlier: Sequence[PastAction], act: PastAction) -> bool:
    """Return whether a read showed something new, judging by its result and not by its arguments (H3)."""
    if any(one.call == act.call and (one.result == act.result or one.changed) for one in earlier):
        return False
    if not act.version:
        return True
    same = [one for one in earlier if (one.target, one.version) == (act.target, act.version)]
    at = act.first
    for one in sorted(same, key=lambda one: one.first):
        at = max(at, one.end) if one.first <= at else at
    return not same or at < act.end
