"""Step and Status of the work, and a table of which step may follow which (D1, D2)."""

from enum import StrEnum

from pydantic import Field, ValidationInfo, field_validator

from duckflow.domain.frozen import Frozen


class Step(StrEnum):
    """Current phase of the work."""

    PLANNING = "PLANNING"
    EXECUTION = "EXECUTION"
    REVIEW = "REVIEW"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    DONE = "DONE"


class Status(StrEnum):
    """Result of the current phase. Set by the program, never by the model."""

    IN_PROGRESS = "IN_PROGRESS"
    SUCCESS = "SUCCESS"
    ERROR = "ERROR"
    REQUIRES_USER_INPUT = "REQUIRES_USER_INPUT"


TransitionTable = dict[Step, tuple[Step, ...]]

PERMITTED: TransitionTable = {
    Step.PLANNING: (Step.EXECUTION, Step.REVIEW, Step.AWAITING_APPROVAL, Step.DONE),
    Step.EXECUTION: (Step.REVIEW, Step.AWAITING_APPROVAL),
    Step.REVIEW: (Step.EXECUTION, Step.AWAITING_APPROVAL, Step.DONE),
    Step.AWAITING_APPROVAL: (Step.EXECUTION, Step.PLANNING),
    Step.DONE: (Step.PLANNING,),
}

ON_ERROR: TransitionTable = {
    Step.EXECUTION: (Step.PLANNING,),
    Step.REVIEW: (Step.PLANNING,),
}


class Transitions(Frozen):
    """Table of transitions: the steps that may follow each step, and further ones after an error."""

    permitted: TransitionTable = Field(default=PERMITTED)
    """Steps that may follow each step."""

    on_error: TransitionTable = Field(default=ON_ERROR)
    """Steps that may also follow after an error, a replan or a change of direction."""

    @field_validator("permitted", "on_error", mode="after")
    @classmethod
    def _keep_other_rows(cls, value: TransitionTable, info: ValidationInfo) -> TransitionTable:
        return {**(PERMITTED if info.field_name == "permitted" else ON_ERROR), **value}

    def permit(self, start: Step, end: Step, *, on_error: bool = False) -> bool:
        """Return whether `end` may follow `start`. Staying in a step is always allowed."""
        return start == end or end in self._following(start, on_error=on_error)

    def route(self, start: Step, end: Step, *, on_error: bool = False) -> tuple[Step, ...] | None:
        """Return the shortest sequence of steps from `start` to `end`, None if there is no such sequence."""
        ways: list[tuple[Step, ...]] = [(start,)]
        for way in ways:  # grows during the loop: a breadth-first search finds the shortest way first
            if way[-1] == end:
                return way[1:]
            reached = {one[-1] for one in ways}
            after = self._following(way[-1], on_error=on_error)
            ways += [(*way, one) for one in after if one not in reached]
        return None

    def _following(self, step: Step, *, on_error: bool) -> tuple[Step, ...]:
        return self.permitted.get(step, ()) + (self.on_error.get(step, ()) if on_error else ())
