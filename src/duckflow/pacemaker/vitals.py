"""How mood, focus and stamina follow from what was observed (SPEC H1 to H4)."""

from collections.abc import Sequence

from duckflow.config.pacing import VitalsNumbers
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Vitals
from duckflow.domain.text import letters_of
from duckflow.pacemaker.limit import EXACT

GAINS: tuple[FocusEvent, ...] = ("task_finished", "new_content", "new_evidence")


def begin(vitals: Vitals, praised: bool, numbers: VitalsNumbers) -> Vitals:  # noqa: FBT001
    """The vitals when a new request comes in."""
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
    """Confidence, dampened by failures among the last actions, lifted by praise (SPEC H2).

    What a `small` model says about itself says nothing.
    """
    confidence = numbers.usual_confidence if said is None or small else said
    ran = [act for trace in traces for act in trace.acts if not act.refused]
    acts = ran[-numbers.actions_counted :]
    failures = sum(act.failed for act in acts) / numbers.actions_counted
    praise = numbers.praise if praised else 0.0
    return _bounded(confidence * (1.0 - numbers.failure_weight * failures) + praise)


def focus_after(focus: float, events: Sequence[FocusEvent], numbers: VitalsNumbers) -> float:
    """Focus after these events. A loop gets on, or repeats itself, once, in however many ways (SPEC H3)."""
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
    """What loops, and tool errors not yet resolved on the same target, have left (SPEC H4).

    `progressed`: so many of the loops got on, and tire less.
    """
    tiring = loops - (1.0 - numbers.progress_loop) * progressed
    return _bounded(1.0 - numbers.loops_weight * tiring / max(limit, 1) - numbers.error_cost * unresolved)


def crosses_window(before: int, now: int, window: int, numbers: VitalsNumbers) -> bool:
    """Whether the prompt has become crowded: tokens of the last one, of this one, and of the window."""
    line = numbers.window_share * window
    return before < line <= now


def turns_away(goal: str, new_goal: str | None) -> bool:
    """Whether a decision that answers the user in the middle of a request replaces its goal."""
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
