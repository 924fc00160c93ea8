"""Thinking effort for a model: more when the work goes badly, less for simple tasks (K6)."""

from duckflow.domain.decision import TALK
from duckflow.domain.model import Effort
from duckflow.domain.pacing.health import LOW
from duckflow.domain.pacing.vitals import Vitals
from duckflow.domain.state import AgentState


def effort_for_decision(state: AgentState) -> Effort:
    """Return the effort for the next decision: the user's choice, or else by how well the request goes."""
    if state.effort != "auto":
        return state.effort
    request = state.request
    if is_unwell(state.vitals):
        return "high"
    if request is None:
        return "medium"
    if request.objective.failed_attempts or request.replanned or request.recoveries > 0:
        return "high"
    return "low" if request.profile in TALK and not request.changed else "medium"


def effort_for_question(state: AgentState, usual: Effort) -> Effort:
    """Return the effort for a side question: the user's choice or `usual`, raised if mood or focus is low."""
    if state.effort != "auto":
        return state.effort
    return "high" if usual == "medium" and is_unwell(state.vitals) else usual


def is_unwell(vitals: Vitals) -> bool:
    """Return whether mood or focus is low, so that more thinking helps. A replan needs a lower focus."""
    return vitals.mood < LOW["mood"] or vitals.focus < LOW["focus"]
