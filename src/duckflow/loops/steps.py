"""The step of the work: what the model may take, and where the program itself moves it (SPEC D2 to D5)."""

from duckflow.domain.approval import Approval
from duckflow.domain.decision import Decision
from duckflow.domain.events import ApprovalRequested, Transition, TransitionRefused
from duckflow.domain.state import AgentState
from duckflow.domain.transitions import Step, Transitions
from duckflow.loops.session import Session

RECOVERIES = 3
"""How often an error may send a request back to planning before the user is asked."""


class Steps:
    """Moves the step of a session by its table."""

    def __init__(self, session: Session, transitions: Transitions) -> None:
        self._session = session
        self._transitions = transitions

    @property
    def _state(self) -> AgentState:
        return self._session.state

    def take(self, decision: Decision) -> None:
        """The one step a decision may take; one that may not follow is refused, and nothing changes."""
        start, end = self._state.step, decision.step
        if end is None or end == start:
            return
        if end == Step.DONE:
            self._refuse(end, "only the program ends a request; say next_step done")
        elif not self._transitions.permit(start, end):
            self._refuse(end, f"{end} may not follow {start}")
        else:
            self._session.record(Transition(start=start, end=end, by="model", reason=decision.rationale))

    def await_approval(self, approval: Approval) -> None:
        """Ask the user, and wait: question and step are written down together."""
        reason = "a change needs the user's yes"
        waiting = Transition(start=self._state.step, end=Step.AWAITING_APPROVAL, by="program", reason=reason)
        self._session.record(ApprovalRequested(approval=approval), waiting)

    def back_to_planning(self, reason: str) -> None:
        """Plan anew, where the table lets the work come back from here."""
        self._back(reason, recovery=False)

    def recover(self) -> bool:
        """Plan anew after an error; False where that was done too often without making it good."""
        request = self._state.request
        if request is not None and request.recoveries >= RECOVERIES:
            return False
        self._back("an action failed", recovery=True)
        return True

    def review(self) -> None:
        """What was changed is looked at before it counts as done; a question answered needs no review."""
        nothing_changed = self._state.request is None or not self._state.request.changed
        if self._state.step == Step.REVIEW or (self._state.step == Step.PLANNING and nothing_changed):
            return
        self._move(Step.REVIEW, "the model says it is done")

    def accept(self) -> None:
        """What is there counts as done."""
        self.review()
        self._move(Step.DONE, "the request is done")

    def _back(self, reason: str, *, recovery: bool) -> None:
        if self._transitions.permit(self._state.step, Step.PLANNING, on_error=True):
            self._move(Step.PLANNING, reason, recovery=recovery)

    def _refuse(self, end: Step, reason: str) -> None:
        self._session.record(TransitionRefused(start=self._state.step, end=end, reason=reason))

    def _move(self, end: Step, reason: str, *, recovery: bool = False) -> None:
        start = self._state.step
        self._session.record(Transition(start=start, end=end, by="program", reason=reason, recovery=recovery))
