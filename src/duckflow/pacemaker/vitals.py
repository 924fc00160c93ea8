"""Computes mood, focus and stamina from observations (H1 to H4)."""

from collections.abc import Mapping, Sequence

from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.text import letters_of
from duckflow.pacemaker.limit import EXACT

GAINS: tuple[FocusEvent, ...] = ("task_finished", "new_content", "new_evidence")

USUAL_CONFIDENCE = 0.8
"""Confidence to assume if the model is small or states none."""

ACTIONS_COUNTED, FAILURE_WEIGHT = 5, 0.3
"""Number of latest actions that affect mood, and the share of mood that is lost if all of them failed."""

PRAISE = 0.1
"""Amount added to mood if the user rated the previous request well."""

FOCUS_CHANGES: Mapping[FocusEvent, float] = {
    **dict.fromkeys(GAINS, 0.1),
    "repetition": -0.4,
    "window_crossed": -0.15,
    "direction_changed": -0.3,
}
"""Amounts that events add to focus."""

AFTER: Mapping[FocusEvent, float] = {"replanned": 0.5, "consultation_answered": 0.8}
"""Focus after a new plan, and after an answer to a consultation."""

AFTER_REQUEST = 0.7
"""Smallest focus at the start of a request."""

WINDOW_SHARE = 0.8
"""Share of the model's context window from which on a prompt counts as crowded."""

LOOPS_WEIGHT, PROGRESS_LOOP = 0.8, 0.25
"""Share of stamina that all loops up to the limit cost, and how much of that a loop with progress costs."""

ERROR_COST = 0.08
"""Amount subtracted from stamina for each tool error that was not resolved."""


def begin(vitals: Vitals, praised: bool) -> Vitals:  # noqa: FBT001
    """Return the vitals at the start of a new request."""
    return Vitals(
        mood=_bounded(vitals.mood + (PRAISE if praised else 0.0)),
        focus=focus_after(vitals.focus, ("new_request",)),
        stamina=1.0,
    )


def mood_of(
    said: float | None, traces: Sequence[LoopTrace], *, small: bool = False, praised: bool = False
) -> float:
    """Return mood: the stated confidence, minus failures, plus praise (H2). Ignores a `small` model's own."""
    confidence = USUAL_CONFIDENCE if said is None or small else said
    ran = [act for trace in traces for act in trace.acts if not act.refused]
    acts = ran[-ACTIONS_COUNTED:]
    failures = sum(act.failed for act in acts) / ACTIONS_COUNTED
    praise = PRAISE if praised else 0.0
    return _bounded(confidence * (1.0 - FAILURE_WEIGHT * failures) + praise)


def focus_after(focus: float, events: Sequence[FocusEvent]) -> float:
    """Return focus after these events. Progress, and repetition, count only once per loop (H3)."""
    counted: set[str] = set()
    for event in events:
        kind = "progress" if event in GAINS else event
        if kind not in counted:
            moved = AFTER.get(event, focus + FOCUS_CHANGES.get(event, 0.0))
            focus = _bounded(max(focus, AFTER_REQUEST) if event == "new_request" else moved)
        counted.add(kind)
    return focus


def stamina_of(loops: int, limit: int, unresolved: int, *, progressed: int = 0) -> float:
    """Return the stamina left after these loops and unresolved errors (H4). Loops with progress cost less."""
    tiring = loops - (1.0 - PROGRESS_LOOP) * progressed
    return _bounded(1.0 - LOOPS_WEIGHT * tiring / max(limit, 1) - ERROR_COST * unresolved)


def crosses_window(before: int, now: int, window: int) -> bool:
    """Return whether the prompt has become crowded, from the tokens of the last prompt and of this one."""
    return before < WINDOW_SHARE * window <= now


def turns_away(goal: str, new_goal: str | None) -> bool:
    """Return whether a decision after a message of the user replaces the goal by another one."""
    return bool(goal.strip()) and bool(new_goal) and letters_of(goal) != letters_of(new_goal or "")


def _bounded(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), EXACT)
