"""How mood, focus and stamina follow from what was observed (SPEC H1 to H4)."""

from collections.abc import Sequence

from duckflow.config.pacing import VitalsNumbers
from duckflow.domain.frozen import Frozen
from duckflow.domain.pacing.limits import LoopTrace
from duckflow.domain.pacing.vitals import FocusEvent, Share, Vitals
from duckflow.domain.text import letters_of
from duckflow.pacemaker.limit import EXACT

GAINS: tuple[FocusEvent, ...] = ("task_finished", "new_content", "new_evidence")


class ObservedLoop(Frozen):
    """What one loop showed: the model's word about itself, and the facts that weigh more."""

    confidence: Share | None = None
    small: bool = False
    """Whether the model is a small one, whose confidence says nothing."""
    outcomes: tuple[bool, ...] = ()
    """Whether each of the last actions succeeded, oldest first."""
    praised: bool = False
    """Whether the user rated the request before this one well."""
    focus_events: tuple[FocusEvent, ...] = ()
    """What moves focus, in the order in which it happened."""
    loops: int = 0
    limit: int = 1
    unresolved: int = 0
    """Tool errors not yet made good on the same target."""


def update(vitals: Vitals, observed: ObservedLoop, numbers: VitalsNumbers) -> Vitals:
    """The vitals at the end of a loop."""
    return Vitals(
        mood=mood_of(observed, numbers),
        focus=focus_after(vitals.focus, observed.focus_events, numbers),
        stamina=stamina_of(observed.loops, observed.limit, observed.unresolved, numbers),
    )


def begin(vitals: Vitals, praised: bool, numbers: VitalsNumbers) -> Vitals:  # noqa: FBT001
    """The vitals when a new request comes in."""
    return Vitals(
        mood=_bounded(vitals.mood + (numbers.praise if praised else 0.0)),
        focus=focus_after(vitals.focus, ("new_request",), numbers),
        stamina=1.0,
    )


def mood_of(observed: ObservedLoop, numbers: VitalsNumbers) -> float:
    """Confidence, dampened by failures among the last actions, lifted by praise (SPEC H2)."""
    said = observed.confidence
    confidence = numbers.usual_confidence if said is None or observed.small else said
    counted = observed.outcomes[-numbers.actions_counted :]
    failures = counted.count(False) / numbers.actions_counted
    praise = numbers.praise if observed.praised else 0.0
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


def stamina_of(loops: int, limit: int, unresolved: int, numbers: VitalsNumbers) -> float:
    """What loops and errors that were not made good have left (SPEC H4)."""
    tired = numbers.loops_weight * loops / max(limit, 1)
    return _bounded(1.0 - tired - numbers.error_cost * unresolved)


def crosses_window(before: int, now: int, window: int, numbers: VitalsNumbers) -> bool:
    """Whether the prompt has become crowded: tokens of the last one, of this one, and of the window."""
    line = numbers.window_share * window
    return before < line <= now


def turns_away(goal: str, new_goal: str | None) -> bool:
    """Whether a decision that answers the user in the middle of a request replaces its goal."""
    return bool(goal.strip()) and bool(new_goal) and letters_of(goal) != letters_of(new_goal or "")


def last_outcomes(traces: Sequence[LoopTrace]) -> tuple[bool, ...]:
    """Whether each action of these loops succeeded, oldest first."""
    return tuple(not act.failed for trace in traces for act in trace.acts)


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
