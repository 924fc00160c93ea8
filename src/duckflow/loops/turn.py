"""READ FIRST. One request, loop by loop, until it ends or needs the user.

    Check      may another loop run?
    Think      look again at what changed, and ask the model for a Decision
    Judge      may its step follow the present one?
    Act        the dispatcher takes each Action through policy to its tool
    Conclude   go on, recover from an error, consult the user, or end

Nothing here holds state: it is read from the session, and changed only by recording events.
"""

from collections.abc import Awaitable, Callable, Sequence

from duckflow.domain.decision import Action, Decision
from duckflow.domain.events import DecisionMade, Reply, Transition, TransitionRefused
from duckflow.domain.frozen import Frozen
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.domain.transitions import Status, Step, Transitions
from duckflow.loops.consulting import over_exertion
from duckflow.loops.dispatcher import Dispatcher
from duckflow.loops.model_use import ModelInUse
from duckflow.loops.session import Session

Look = Callable[[AgentState], Awaitable[Sequence[Action]]]
"""What the program wants to see again before the model decides."""


class Limits(Frozen):
    """How far a request may go before the user is asked."""

    max_loops: int
    recoveries: int = 3
    transitions: Transitions = Transitions()


class Turn:
    """Works on the open request of a session."""

    def __init__(
        self, session: Session, model: ModelInUse, dispatcher: Dispatcher, look: Look, limits: Limits
    ) -> None:
        self._session = session
        self._model = model
        self._dispatcher = dispatcher
        self._look = look
        self._limits = limits

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def work(self) -> RequestOutcome:
        """Go on until the request ends or needs the user; actions left from before come first."""
        outcome = await self._act() if self._state.queue else None
        while outcome is None:
            outcome = await self._loop()
        return outcome

    async def _loop(self) -> RequestOutcome | None:
        if self._loops_used() >= self._limits.max_loops:
            return "limit"
        decision = await self._think()
        self._judge(decision)
        return await self._act()

    def _loops_used(self) -> int:
        return self._state.request.loops if self._state.request else 0

    async def _think(self) -> Decision:
        await self._dispatcher.run_now(await self._look(self._state))
        decided = await self._model.decide(self._state)
        decision = decided.decision
        made = DecisionMade(loop=self._loops_used() + 1, decision=decision, exchange=decided.exchange)
        said = (Reply(text=decision.reply),) if decision.reply.strip() else ()
        self._session.record(made, *said)
        return decision

    def _judge(self, decision: Decision) -> None:
        start, end = self._state.step, decision.step
        if end is None or end == start:
            return
        if end == Step.DONE:
            self._refuse(end, "only the program ends a request; say next_step done")
        elif not self._limits.transitions.permit(start, end):
            self._refuse(end, f"{end} may not follow {start}")
        else:
            self._session.record(Transition(start=start, end=end, by="model", reason=decision.rationale))

    def _refuse(self, end: Step, reason: str) -> None:
        self._session.record(TransitionRefused(start=self._state.step, end=end, reason=reason))

    async def _act(self) -> RequestOutcome | None:
        if not await self._dispatcher.run_queue():
            return "awaiting_approval"
        return self._conclude()

    def _conclude(self) -> RequestOutcome | None:
        if self._state.status == Status.ERROR:
            return self._recover()
        match self._state.next_step:
            case "continue":
                return None
            case "pending_user":
                return "pending_user"
            case "defer":
                return "deferred"
            case "done" if self._state.background_runs:
                return "deferred"
            case "done":
                self.accept()
                return "done"

    def _recover(self) -> RequestOutcome | None:
        """After an error, plan again; after too many that were not made good, ask the user (SPEC D5)."""
        request = self._state.request
        if request is not None and request.recoveries >= self._limits.recoveries:
            self._session.record(over_exertion(self._state))
            return "consultation"
        if self._limits.transitions.permit(self._state.step, Step.PLANNING, on_error=True):
            self._move(Step.PLANNING, "an action failed", recovery=True)
        return None

    def _move(self, end: Step, reason: str, *, recovery: bool = False) -> None:
        self._session.record(
            Transition(start=self._state.step, end=end, by="program", reason=reason, recovery=recovery)
        )

    def accept(self) -> None:
        """What is there counts as done: walk to the end, past the review where something was changed."""
        for end in _steps_to_done(self._state):
            self._move(end, "the request is done")


def _steps_to_done(state: AgentState) -> Sequence[Step]:
    """What was changed is reviewed first; a question answered is simply done."""
    nothing_changed = state.request is None or not state.request.changed
    if state.step == Step.REVIEW or (state.step == Step.PLANNING and nothing_changed):
        return (Step.DONE,)
    return (Step.REVIEW, Step.DONE)
