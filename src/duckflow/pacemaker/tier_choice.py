"""Which tier decides next: simple work goes to the fast one, as long as it goes well (SPEC K5)."""

from duckflow.domain.decision import TaskProfile
from duckflow.domain.model import TierName
from duckflow.domain.state import Request

SIMPLE: tuple[TaskProfile, ...] = ("simple_question", "general_chat", "file_operation")
"""Profiles that do not need the best model there is."""

LOW_COMPLEXITY = 0.3


def choose_tier(request: Request | None) -> TierName:
    """The tier for the next decision. Nothing known, trouble, or a second attempt: the creative one."""
    if request is None or request.limit is None or request.profile not in SIMPLE:
        return "creative"
    tried = request.objective is not None and bool(request.objective.attempts)
    troubled = bool(request.failing) or not request.sure or request.replanned or tried
    return "creative" if troubled or request.limit.complexity >= LOW_COMPLEXITY else "fast"
