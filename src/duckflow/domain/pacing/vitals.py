"""D.U.C.K. Vitals: the duck's condition in three numbers, and the events that change focus (H1)."""

from collections.abc import Sequence
from typing import Annotated, Literal, get_args

from pydantic import Field

from duckflow.domain.frozen import Frozen

Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
VitalName = Literal["mood", "focus", "stamina"]
VITALS: tuple[VitalName, ...] = get_args(VitalName)
FocusEvent = Literal[
    "task_finished",
    "new_content",
    "new_evidence",
    "repetition",
    "window_crossed",
    "direction_changed",
    "replanned",
    "consultation_answered",
    "new_request",
]

_BARS = "▁▂▃▄▅▆▇█"

_FACES: dict[VitalName, tuple[tuple[float, str], ...]] = {
    "mood": ((0.8, "😎"), (0.7, "🙂"), (0.0, "😔")),
    "focus": ((0.8, "🧘"), (0.5, "🤔"), (0.0, "😵")),
    "stamina": ((0.7, "💪"), (0.5, "😓"), (0.1, "🤕"), (0.0, "💀")),
}
"""Faces for each vital, with the smallest value for which each one is shown, highest first."""


class Vitals(Frozen):
    """Mood is confidence in the plan, focus is consistent thinking, stamina is remaining strength."""

    mood: Share = 1.0
    focus: Share = 1.0
    stamina: Share = 1.0


def face_of(name: VitalName, value: float) -> str:
    """Return the face for this value of a vital."""
    return next((face for least, face in _FACES[name] if value >= least), _FACES[name][-1][1])


def is_low(name: VitalName, value: float) -> bool:
    """Return whether a vital is so low that its face shows trouble."""
    return value < _FACES[name][1][0]


def sparkline(values: Sequence[float], width: int) -> str:
    """Draw values from 0 to 1 as a row of bars, newest on the right. The oldest are cut off (H7)."""
    newest = values[-width:] if width > 0 else ()
    return "".join(_BARS[round(min(max(value, 0.0), 1.0) * (len(_BARS) - 1))] for value in newest)
