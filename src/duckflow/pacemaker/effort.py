"""How much a model is asked to think: more when the work goes badly, less for what is simple (SPEC K6)."""

from duckflow.domain.decision import TaskProfile
from duckflow.domain.model import Effort
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.state import AgentState, Request

LOW_MOOD, LOW_FOCUS = 0.7, 0.5
"""Below these values more thinking helps. Focus counts earlier here than for a new plan, which costs more."""

SIMPLE: tuple[TaskProfile, ...] = ("simple_question", "general_chat")
"""Profiles that a model answers without much thought."""


def effort_for_decision(state: AgentState) -> Effort:
    """The effort of the next decision: the user's choice, or by how the request goes."""
    if state.effort != "auto":
        return state.effort
    request = state.request
    if is_unwell(state.vitals) or (request is not None and went_wrong(request)):
        return "high"
    return "low" if request is not None and request.profile in SIMPLE and not request.changed else "medium"


def effort_for_question(state: AgentState, usual: Effort) -> Effort:
    """The effort of a side question: the user's choice, or the usual one, raised from medium in bad times."""
    if state.effort != "auto":
        return state.effort
    return "high" if usual == "medium" and is_unwell(state.vitals) else usual


def is_unwell(vitals: Vitals) -> bool:
    """Whether mood or focus is low."""
    return vitals.mood < LOW_MOOD or vitals.focus < LOW_FOCUS


def went_wrong(request: Request) -> bool:
    """Whether an attempt did not satisfy, or errors or circles led back to planning."""
    return bool(request.objective.failed_attempts) or request.replanned or request.recoveries > 0
