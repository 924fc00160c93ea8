"""Transitions between steps, caused by the model's decisions or by the program (D2 to D5)."""

from dataclasses import dataclass
from itertools import pairwise

from duckflow.domain.decision import Decision
from duckflow.domain.events import ApprovalRequested, Transition, TransitionRefused
from duckflow.domain.questions.approval import Approval
from duckflow.domain.transitions import Step, Transitions
from duckflow.loops.session import SessionPart

RECOVERIES = 3
"""Number of times that an error may return a request to planning before the user is asked."""


@dataclass(eq=False)
class Steps(SessionPart):
    """Records transitions between the steps of a session, if the table allows them."""

    _transitions: Transitions

    def take(self, decision: Decision, *, changes: bool) -> None:
        """Enter the step of a decision, or refuse it. Without one, derive the step from the actions (D3)."""
        start, end = self._state.step, decision.step
        if end is None and decision.actions:
            derived = Step.EXECUTION if changes else Step.PLANNING
            end = derived if self._transitions.permit(start, derived) else None
        if end is None or end == start:
            return
        if end == Step.DONE:
            self._refuse(end, "only the program ends a request; say next_step done")
        elif not self._transitions.permit(start, end):
            self._refuse(end, f"{end} may not follow {start}")
        else:
            self._session.record(Transition(start=start, end=end, by="model", reason=decision.rationale))

    def plan(self, reason: str) -> None:
        """Return to planning."""
        self._move(Step.PLANNING, reason, on_error=True)

    def await_approval(self, approval: Approval) -> None:
        """Ask the user for approval, and wait."""
        self._session.record(ApprovalRequested(approval=approval))
        self._move(Step.AWAITING_APPROVAL, "a change needs the user's yes")

    def answer_approval(self, *, yes: bool) -> None:
        """Stop waiting for an approval: continue if it was given, otherwise return to planning."""
        self._move(*((Step.EXECUTION, "approved") if yes else (Step.PLANNING, "not approved")))

    def recover(self) -> bool:
        """Return to planning after an error. Return False if that was done too often."""
        request = self._state.request
        if request is not None and request.recoveries >= RECOVERIES:
            return False
        self._move(Step.PLANNING, "an action failed", on_error=True, recovery=True)
        return True

    def review(self) -> None:
        """Enter the review step, which comes before a request is done. A mere answer needs no review."""
        nothing_changed = self._state.request is None or not self._state.request.changed
        answers = self._state.only_talks or (self._state.step == Step.PLANNING and nothing_changed)
        if not answers:
            self._move(Step.REVIEW, "the model says it is done")

    def accept(self) -> None:
        """End the request as done."""
        self.review()
        self._move(Step.DONE, "the request is done")

    def _refuse(self, end: Step, reason: str) -> None:
        self._session.record(TransitionRefused(start=self._state.step, end=end, reason=reason))

    def _move(self, end: Step, reason: str, *, on_error: bool = False, recovery: bool = False) -> None:
        start = self._state.step
        route = self._transitions.route(start, end, on_error=on_error)
        if route is None:
            self._refuse(end, f"{end} may not follow {start}: {reason}")
            return
        for one, following in pairwise((start, *route)):
            last = recovery and following == end
            self._session.record(
                Transition(start=one, end=following, by="program", reason=reason, recovery=last)
            )
