"""Step and Status of the work, and which step may follow which, as data (SPEC D1, D2)."""

from enum import StrEnum


class Step(StrEnum):
    """What the agent is doing."""

    PLANNING = "PLANNING"
    EXECUTION = "EXECUTION"
    REVIEW = "REVIEW"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    DONE = "DONE"


class Status(StrEnum):
    """How that is going. Set by the program, never by the model."""

    IN_PROGRESS = "IN_PROGRESS"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    REQUIRES_USER_INPUT = "REQUIRES_USER_INPUT"


TransitionTable = dict[Step, frozenset[Step]]

PERMITTED: TransitionTable = {
    Step.PLANNING: frozenset({Step.EXECUTION, Step.REVIEW, Step.AWAITING_APPROVAL, Step.DONE}),
    Step.EXECUTION: frozenset({Step.REVIEW, Step.AWAITING_APPROVAL}),
    Step.REVIEW: frozenset({Step.EXECUTION, Step.AWAITING_APPROVAL, Step.DONE}),
    Step.AWAITING_APPROVAL: frozenset({Step.EXECUTION, Step.PLANNING}),
    Step.DONE: frozenset({Step.PLANNING}),
}

ON_ERROR: TransitionTable = {
    Step.EXECUTION: frozenset({Step.PLANNING}),
    Step.REVIEW: frozenset({Step.PLANNING}),
}


def permitted(start: Step, end: Step, *, on_error: bool = False) -> bool:
    """Whether `end` may follow `start`; staying is no transition and always permitted."""
    if start == end or end in PERMITTED.get(start, frozenset()):
        return True
    return on_error and end in ON_ERROR.get(start, frozenset())
