"""READ FIRST. One request, loop by loop, until it ends or needs the user.

    Check      may another loop run, or is it time to plan again, to ask, to stop?
    Think      look again at what changed, and ask the model for a Decision
    Judge      may its step follow the present one? was this very list tried before, and failed?
    Act        the dispatcher takes each Action through policy to its tool
    Observe    how is the duck doing, by what was seen?
    Conclude   go on, recover from an error, or see whether "done" satisfies

Nothing here holds state: it is read from the session, and changed only by recording events.
"""

from duckflow.domain.decision import Decision
from duckflow.domain.errors import ProviderError
from duckflow.domain.events import DecisionMade, ErrorReported, Reply
from duckflow.domain.state import AgentState
from duckflow.domain.transitions import Status
from duckflow.domain.work.outcomes import ENDED, RequestOutcome
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.judging.advice import work_so_far
from duckflow.loops.judging.consultation import consult
from duckflow.loops.judging.judging import Judging
from duckflow.loops.judging.verification import Verification
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import Session
from duckflow.loops.steps import Steps
from duckflow.loops.thinking.model import DecisionModel
from duckflow.pacemaker.rules import Consult, Go, Replan

TRIED_BEFORE = "This very list was tried before and did not help. Go about it in another way."


class Turn:
    """Works on the open request of a session."""

    def __init__(
        self,
        session: Session,
        model: DecisionModel,
        dispatcher: Dispatcher,
        pacing: Pacing,
        judging: Judging,
        verification: Verification,
        steps: Steps,
        hooks: Hooks,
    ) -> None:
        self._session = session
        self._model = model
        self._dispatcher = dispatcher
        self._pacing = pacing
        self._judging = judging
        self._verification = verification
        self._steps = steps
        self._hooks = hooks

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def work(self) -> RequestOutcome:
        """Go on until the request ends or needs the user; actions left from before come first."""
        outcome = await self._act() if self._state.queue else None
        while outcome is None or await self._hook_wants_more(outcome):
            if self._hooks.halted:
                return "stopped"
            outcome = await self._loop()
        return outcome

    async def settle(self, error: ProviderError) -> RequestOutcome:
        """The model can't go on: say what it did before, and judge that without another attempt (A6)."""
        self._session.record(*work_so_far(self._state, error))
        await self._dispatcher.settle_background()
        if self._state.approval is not None:
            return "awaiting_approval"
        if not await self._judging.settle(error):
            return self._ask(Consult(kind="escalation", cause="model"))
        self._steps.accept()
        return "done"

    def end(self, outcome: RequestOutcome) -> None:
        """The work has ended, for good or until the user answers."""
        if outcome in (*ENDED, "interrupted"):
            self._judging.stop()
        self._pacing.end(outcome)

    async def _hook_wants_more(self, outcome: RequestOutcome) -> bool:
        """Whether a hook of the user's lets the work not end here (L5)."""
        if outcome not in ("done", "not_judged", "pending_user") or not await self._hooks.stop():
            return False
        self._steps.plan("a hook wants more")
        return True

    async def _loop(self) -> RequestOutcome | None:
        """Once round; None if another loop is to follow."""
        asked = await self._check()
        if asked is not None:
            return asked
        decision = await self._think()
        refused = await self._judge(decision)
        return await self._act(refused=refused)

    async def _check(self) -> RequestOutcome | None:
        """What the pacemaker says before another loop (H5)."""
        match move := self._pacing.next_move():
            case Go():
                return None
            case Replan():
                self._steps.plan("the work went in circles")
                await self._judging.replan()
                return None
            case Consult():
                return self._ask(move)

    async def _think(self) -> Decision:
        """Ask the model, and write down what it wants; its actions are queued with that."""
        await self._dispatcher.look_again()
        decided, used = await self._model.decide(self._state)
        decision = decided.decision
        loops = self._state.request.loops if self._state.request else 0
        changing = self._dispatcher.changing(decision.actions)
        made = DecisionMade(
            loop=loops + 1,
            decision=decision,
            exchange=decided.exchange,
            held=changing if decision.objection and not self._state.doubted else (),
            closing=decided.closing,
        )
        said = (Reply(text=decision.reply),) if decision.reply.strip() else ()
        self._session.record(*used, made, *said)
        if decision.objection and changing and not made.held and not self._state.attended:
            self._session.record(
                ErrorReported(key="decision.doubt", values={"doubt": decision.objection}, notice=True)
            )
        self._pacing.set_limit()
        self._judging.begin(decision, decided.requirements)
        return decision

    async def _judge(self, decision: Decision) -> bool:
        """Take or refuse the step; True if the actions are refused, too (D3, D4, J4)."""
        self._steps.take(decision, changes=bool(self._dispatcher.changing(decision.actions)))
        refused = await self._judging.refuses(decision.actions)
        if refused:
            self._dispatcher.refuse_queue(TRIED_BEFORE)
        return refused

    async def _act(self, *, refused: bool = False) -> RequestOutcome | None:
        """Run what is queued, observe, conclude; what the user must permit first ends the turn."""
        if not await self._dispatcher.run_queue():
            return "awaiting_approval"
        await self._pacing.observe(self._session.take_events(), refused=refused)
        return await self._conclude()

    async def _conclude(self) -> RequestOutcome | None:
        """What follows, by how the actions went and what the decision wants after them.

        After an error: plan again; after too many that were not made good, ask the user (D5).
        """
        if self._state.status == Status.ERROR:
            return None if self._steps.recover() else self._ask(self._pacing.reason_to_ask())
        match self._state.next_step:
            case "continue":
                return None
            case "pending_user":
                return "pending_user"
            case "done" if not self._state.background_runs:
                return await self._see_whether_done()
            case "defer" | "done":
                return "deferred"

    async def _see_whether_done(self) -> RequestOutcome | None:
        """Done means satisfied: the evidence decides, not the claim (J2)."""
        self._steps.review()
        if self._state.closing:
            self._session.record(Reply(text=self._state.closing))
        if await self._dispatcher.end_background() or await self._verification.prepare():
            return await self._act()
        match await self._judging.judge():
            case "done" | "not_judged" as outcome:
                self._steps.accept()
                return outcome
            case "again":
                self._steps.plan("not satisfied yet")
                return None
            case "asked":
                return "pending_user"
            case "exhausted":
                return self._ask(Consult(kind="escalation", cause="attempts"))

    def _ask(self, about: Consult) -> RequestOutcome:
        """Put a question to the user; the turn ends with it."""
        self._session.record(consult(self._state, about.kind, about.cause))
        self._hooks.notify("elicitation_dialog", about.kind)
        return "not_satisfied" if about.kind == "escalation" else "consultation"
