"""The duck's check-up, as catalogue keys: findings on mood, focus and stamina, and a remark (H6).

The findings contain no numbers, because the status bar already shows them.
"""

from collections.abc import Iterator

from duckflow.domain.lines import TextLine, line
from duckflow.domain.pacing.vitals import VitalName, face_of
from duckflow.domain.state import AgentState

LOW: dict[VitalName, float] = {"mood": 0.7, "focus": 0.5, "stamina": 0.5}
"""Values below which a vital counts as low."""

HIGH = 0.8

_ACTIONS = 5


def examine(state: AgentState) -> Iterator[TextLine]:
    """Yield one finding for each vital, that it is fine or why it is low, and the doctor's remark on them."""
    failing = state.request.failing if state.request else ()
    history = state.request.history if state.request else ()
    acts = [act for trace in history for act in trace.acts][-_ACTIONS:]
    worries: dict[VitalName, str] = {
        "mood": "failures" if any(act.failed for act in acts) else "doubt",
        "focus": "repeated" if history and history[-1].repeated else "scattered",
        "stamina": "errors" if failing else "loops",
    }
    low = {name for name, least in LOW.items() if getattr(state.vitals, name) < least}
    for name, worry in worries.items():
        value = getattr(state.vitals, name)
        seen = worry if name in low else "high" if value > HIGH else "usual"
        yield line(f"health.{name}.{seen}", face=face_of(name, value))
    if "stamina" in low:
        remark = "rest"
    elif "focus" in low:
        remark = "other_way" if "mood" in low else "replan"
    else:
        remark = "guidance" if "mood" in low else "well"
    yield line(f"health.remark.{remark}")
