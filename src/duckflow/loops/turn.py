"""READ FIRST. Works on one request, loop by loop, until it ends or needs the user.

    Check      decide whether to run another loop, plan again or ask the user
    Think      read changed files again, and ask the model for a Decision
    Judge      check its step, and refuse actions that failed before
    Act        the dispatcher takes each Action through the policy to its tool
    Observe    compute the vitals from the events of the loop
    Conclude   continue, recover from an error, or judge whether the request is done

This module holds no state. All state is in the session, and only recorded events change it.
"""

from dataclasses import dataclass

from duckflow.domain.decision import Decision
from duckflow.domain.errors import ProviderError
from duckflow.domain.events import ActionQueued, Event, Reply, UserMessage
from duckflow.domain.transitions import Status, Step
from duckflow.domain.work.outcomes import ENDED, RequestOutcome
from duckflow.evaluation.continuation import TRIED_BEFORE
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.judging.advice import work_so_far
from duckflow.loops.judging.consultation import consult
from duckflow.loops.judging.judging import Judging
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import SessionPart
from duckflow.loops.steps import Steps
from duckflow.loops.thinking.messages import MessageReader
from duckflow.loops.thinking.model import DecisionModel
from duckflow.pacemaker.rules import Consult, Go, Replan
from duckflow.tools.shell import TAKE_OVER


@dataclass(eq=False)
class Turn(SessionPart):
    """Works on the open request of a session."""

    _reader: MessageReader
    _model: DecisionModel
    _dispatcher: Dispatcher
    _pacing: Pacing
    _judging: Judging
    _steps: Steps
    _hooks: Hooks

    def begin(self, said: UserMessage, *notices: Event) -> None:
        """Record a message. It starts a request, or adds to the open request."""
        request = self._state.request
        added = request is not None and request.request_id == said.request_id
        if not added or self._state.step in (Step.AWAITING_APPROVAL, Step.REVIEW, Step.DONE):
            self._steps.plan("the user said something else" if added else "a new request")
        self._session.record(said, *notices)
        if not added:
            self._pacing.begin()

    async def work(self) -> RequestOutcome:
        """Run loops until the request ends or needs the user. Actions that are already queued come first."""
        outcome = await self._act() if self._state.queue else None
        while outcome is None or await self._hear(outcome) or await self._hook_wants_more(outcome):
            if self._hooks.halted:
                return "stopped"
            outcome = await self._loop()
        return outcome

    async def settle(self, error: ProviderError) -> RequestOutcome:
        """After the model failed, report the work so far, and judge it without another attempt (A6)."""
        self._session.record(*work_so_far(self._state, error))
        await self._dispatcher.settle_background()
        if self._state.approval is not None:
            return "awaiting_approval"
        if not await self._judging.settle(error):
            return self._ask(Consult(kind="escalation", cause="model"))
        self._steps.accept()
        return "done"

    def end(self, outcome: RequestOutcome) -> None:
        """Log the outcome. If the request has ended, cancel the search for its requirements."""
        if outcome in (*ENDED, "interrupted"):
            self._judging.stop()
        self._pacing.end(outcome)

    async def _loop(self) -> RequestOutcome | None:
        """Run one loop. Return the outcome, None if another loop must follow."""
        await self._hear()
        asked = await self._check()
        if asked is not None:
            return asked
        decision = await self._think()
        refused = await self._judge(decision)
        return await self._act(refused=refused)

    async def _hear(self, outcome: RequestOutcome | None = None) -> bool:
        """Take what the user typed during the work. Return whether the model must decide again (C6)."""
        request, asked, heard = self._state.request, self._state.approval, False
        if request is None or outcome in ENDED or (asked is not None and asked.action.operation == TAKE_OVER):
            return False  # a command has run, and its effects are the user's to keep or not
        async for message, *problems in self._reader.hear(request.request_id):
            self.begin(message, *problems)
            await self._reader.look_ahead(message)
            heard = True
        return heard

    async def _check(self) -> RequestOutcome | None:
        """Continue, plan again, or ask the user. Return the outcome if the user is asked."""
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
        """Ask the model, and record its decision. That queues the decision's actions."""
        await self._dispatcher.look_again()
        decided, used = await self._model.decide(self._state)
        self._dispatcher.queue(decided, used)
        self._pacing.set_limit()
        self._judging.begin(decided.decision, decided.requirements)
        return decided.decision

    async def _judge(self, decision: Decision) -> bool:
        """Enter the step or refuse it. Return whether the actions are refused, too (D3, D4, J4)."""
        self._steps.take(decision, changes=bool(self._dispatcher.changing(decision.actions)))
        refused = await self._judging.refuses(decision.actions)
        if refused:
            self._dispatcher.refuse_queue(TRIED_BEFORE)
        return refused

    async def _act(self, *, refused: bool = False) -> RequestOutcome | None:
        """Run the queued actions, observe and conclude. Stop if an action needs the user's approval."""
        if not await self._dispatcher.run_queue():
            return "awaiting_approval"
        await self._pacing.observe(self._session.take_events(), refused=refused)
        return await self._conclude()

    async def _conclude(self) -> RequestOutcome | None:
        """Continue as the decision says. After an error, plan again; after too many, ask the user (D5)."""
        if self._session.words is not None:
            return None
        if self._state.status == Status.ERROR:
            return None if self._steps.recover() else self._ask(self._pacing.reason_to_ask())
        if self._state.set_aside and self._state.next_step != "continue":
            return await self._ask_again()
        match self._state.next_step:
            case "continue":
                return None
            case "pending_user":
                return "pending_user"
            case "done" if not self._state.background_runs:
                return await self._see_whether_done()
            case "defer" | "done":
                return "deferred"

    async def _ask_again(self) -> RequestOutcome | None:
        """Ask again what the user did not answer with yes or no, after the model has replied (G1)."""
        if self._state.closing:
            self._session.record(Reply(text=self._state.closing))
        self._session.record(ActionQueued(actions=self._state.set_aside))
        return await self._act()

    async def _see_whether_done(self) -> RequestOutcome | None:
        """Decide by the evidence whether the request is done, not by the model's claim (J2)."""
        self._steps.review()
        if self._state.closing:
            self._session.record(Reply(text=self._state.closing))
        if self._state.only_talks:
            return "pending_user"  # the user stopped the work, and only they let it continue
        if await self._dispatcher.end_background():
            return await self._act()
        match await self._judging.judge():
            case "tests":
                return await self._act()
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

    async def _hook_wants_more(self, outcome: RequestOutcome) -> bool:
        if outcome not in ("done", "not_judged", "pending_user") or not await self._hooks.stop():
            return False
        self._steps.plan("a hook wants more")
        return True

    def _ask(self, about: Consult) -> RequestOutcome:
        self._session.record(consult(self._state, about.kind, about.cause, alone=self._model.alone))
        self._hooks.notify("elicitation_dialog", about.kind)
        return "not_satisfied" if about.kind == "escalation" else "consultation"
