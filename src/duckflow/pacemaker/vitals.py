"""Computes mood, focus and stamina from observations (H1 to H4)."""

from collections.abc import Sequence

from duckflow.config.pacing import VitalsNumbers
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.text import letters_of
from duckflow.pacemaker.limit import EXACT

GAINS: tuple[FocusEvent, ...] = ("task_finished", "new_content", "new_evidence")


def begin(vitals: Vitals, praised: bool, numbers: VitalsNumbers) -> Vitals:  # noqa: FBT001
    """Return the vitals at the start of a new request."""
    return Vitals(
        mood=_bounded(vitals.mood + (numbers.praise if praised else 0.0)),
        focus=focus_after(vitals.focus, ("new_request",), numbers),
        stamina=1.0,
    )


def mood_of(
    said: float | None,
    traces: Sequence[LoopTrace],
    numbers: VitalsNumbers,
    *,
    small: bool = False,
    praised: bool = False,
) -> float:
    """Return confidence, lowered by failures among the last actions and raised by praise (H2).

    The confidence that a `small` model states is ignored.
    """
    confidence = numbers.usual_confidence if said is None or small else said
    ran = [act for trace in traces for act in trace.acts if not act.refused]
    acts = ran[-numbers.actions_counted :]
    failures = sum(act.failed for act in acts) / numbers.actions_counted
    praise = numbers.praise if praised else 0.0
    return _bounded(confidence * (1.0 - numbers.failure_weight * failures) + praise)


def focus_after(focus: float, events: Sequence[FocusEvent], numbers: VitalsNumbers) -> float:
    """Return focus after these events. Progress and repetition count once per loop (H3)."""
    counted: set[str] = set()
    for event in events:
        kind = "progress" if event in GAINS else event
        if kind not in counted:
            focus = _bounded(_moved(focus, event, numbers))
        counted.add(kind)
    return focus


def stamina_of(
    loops: int, limit: int, unresolved: int, numbers: VitalsNumbers, *, progressed: int = 0
) -> float:
    """Return the stamina left after loops and unresolved tool errors (H4).

    `progressed`: number of these loops that made progress, which cost less.
    """
    tiring = loops - (1.0 - numbers.progress_loop) * progressed
    return _bounded(1.0 - numbers.loops_weight * tiring / max(limit, 1) - numbers.error_cost * unresolved)


def crosses_window(before: int, now: int, window: int, numbers: VitalsNumbers) -> bool:
    """Return whether the prompt has become crowded, from the tokens of the last prompt and this one."""
    line = numbers.window_share * window
    return before < line <= now


def turns_away(goal: str, new_goal: str | None) -> bool:
    """Return whether a decision that answers the user during a request replaces its goal."""
    return bool(goal.strip()) and bool(new_goal) and letters_of(goal) != letters_of(new_goal or "")


def _moved(focus: float, event: FocusEvent, numbers: VitalsNumbers) -> float:
    match event:
        case "task_finished" | "new_content" | "new_evidence":
            return focus + numbers.progress
        case "repetition":
            return focus - numbers.repetition
        case "window_crossed":
            return focus - numbers.crowded
        case "direction_changed":
            return focus - numbers.new_direction
        case "replanned":
            return numbers.after_replan
        case "consultation_answered":
            return numbers.after_answer
        case "new_request":
            return max(focus, numbers.after_request)


def _bounded(value: float) -> float:
    return round(min(max(value, 0.0), 1.0), EXACT)
