"""The duck's check-up: what was observed of mood, focus and stamina, and the doctor's remark (SPEC H6).

Findings are catalogue keys. They say what was seen and give no numbers; the numbers are in the status bar.
"""

from collections.abc import Sequence
from typing import Literal

from duckflow.domain.pacing.limits import LoopTrace, ReasonLine
from duckflow.domain.pacing.vitals import VitalName, Vitals, face_of
from duckflow.domain.state import AgentState, Request

LOW: dict[VitalName, float] = {"mood": 0.7, "focus": 0.5, "stamina": 0.5}
"""Below this a vital is worth a worry."""

HIGH = 0.8

Remark = Literal["well", "guidance", "replan", "other_way", "rest"]

_ACTIONS = 5


def examine(state: AgentState) -> tuple[ReasonLine, ...]:
    """The three findings."""
    vitals, request = state.vitals, state.request
    observed: dict[VitalName, tuple[float, str]] = {
        "mood": (vitals.mood, _mood(request)),
        "focus": (vitals.focus, _focus(request)),
        "stamina": (vitals.stamina, _stamina(request)),
    }
    return tuple(
        ReasonLine(key=f"health.{name}.{_word(name, value) or seen}", values={"face": face_of(name, value)})
        for name, (value, seen) in observed.items()
    )


def remark_on(state: AgentState) -> ReasonLine:
    """What the doctor says to it."""
    return ReasonLine(key=f"health.remark.{_remark(state.vitals)}")


def _word(name: VitalName, value: float) -> Literal["high", "usual"] | None:
    """A vital that is no worry in a word; None for one that is."""
    if value < LOW[name]:
        return None
    return "high" if value > HIGH else "usual"


def _remark(vitals: Vitals) -> Remark:
    if vitals.stamina < LOW["stamina"]:
        return "rest"
    if vitals.focus < LOW["focus"]:
        return "other_way" if vitals.mood < LOW["mood"] else "replan"
    return "guidance" if vitals.mood < LOW["mood"] else "well"


def _mood(request: Request | None) -> Literal["failures", "doubt"]:
    acts = [act for trace in _history(request) for act in trace.acts][-_ACTIONS:]
    return "failures" if any(act.failed for act in acts) else "doubt"


def _focus(request: Request | None) -> Literal["repeated", "scattered"]:
    history = _history(request)
    return "repeated" if history and history[-1].repeated else "scattered"


def _stamina(request: Request | None) -> Literal["errors", "loops"]:
    return "errors" if request and request.failing else "loops"


def _history(request: Request | None) -> Sequence[LoopTrace]:
    return request.history if request else ()
