"""The chat loop: what the user says becomes a request, and every way of ending it is written down."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence

from pydantic import JsonValue

from duckflow.domain.errors import ProviderError, UserError
from duckflow.domain.events import (
    ApprovalRequested,
    ConsultationRequested,
    ErrorReported,
    RequestFinished,
    RequestRated,
    UserMessage,
)
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay, ConsultationKind
from duckflow.domain.state import Request
from duckflow.domain.transitions import Step
from duckflow.domain.work.outcomes import ENDED, RequestOutcome
from duckflow.i18n.answers import read_answer, read_choice
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.hooks.hooks import Hooks
from duckflow.loops.judging.answers import UserAnswers
from duckflow.loops.judging.consultation import consult
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import Session
from duckflow.loops.steps import Steps
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.memory import SessionMemory
from duckflow.loops.thinking.model import DecisionModel
from duckflow.loops.thinking.small_models import WorkspaceLook, reads_of_named
from duckflow.loops.turn import Turn
from duckflow.prompts.budget import RulesTooLong
from duckflow.safety.uncancelled import shielded

EXIT_CODES: dict[RequestOutcome, int] = {
    "done": 0,
    "accepted": 0,
    "not_judged": 1,
    "not_satisfied": 1,
    "stopped": 1,
    "pending_user": 3,
    "deferred": 3,
    "awaiting_approval": 3,
    "consultation": 3,
    "provider_error": 4,
    "interrupted": 130,
}


class ChatLoop:
    """Takes what the user says or answers and works until the request ends or needs the user again."""

    def __init__(
        self,
        session: Session,
        turn: Turn,
        answers: UserAnswers,
        steps: Steps,
        pacing: Pacing,
        dispatcher: Dispatcher,
        model: DecisionModel,
        look: WorkspaceLook,
        memory: SessionMemory,
        tasks: TaskLoop,
        hooks: Hooks,
    ) -> None:
        self._session = session
        self._turn = turn
        self._answers = answers
        self._steps = steps
        self._pacing = pacing
        self._dispatcher = dispatcher
        self._model = model
        self._look = look
        self._memory = memory
        self._tasks = tasks
        self._hooks = hooks

    async def say(self, text: str) -> RequestOutcome:
        """A message: a new request, or more on the one that waits; nothing if a hook refuses it."""
        added = await self._hooks.submitted(text)
        if added is None:
            return "stopped"
        state, request = self._session.state, self._session.state.request
        goes_on = request is not None and request.outcome not in (None, "interrupted")
        request_id = request.request_id if request and goes_on else f"r_{secrets.token_hex(4)}"
        fresh = not goes_on
        if fresh or state.step == Step.AWAITING_APPROVAL:
            self._steps.plan("a new request" if fresh else "the user said something else")
        files = await self._look.files()
        note = await self._look.note()
        told = "" if note == state.files_note else note
        seen = await self._look.pictures(text)
        said = UserMessage(request_id=request_id, text=text, note=told, added=added, pictures=seen.pictures)
        self._session.record(said, *seen.problems)
        if fresh:
            self._pacing.begin()
        return await self._settle(self._begin(said, files, fresh=fresh))

    async def answer(self, answer: AnswerApproval) -> RequestOutcome:
        """The user's answer to the open approval; the work goes on from there."""
        approval = self._session.state.approval
        if approval is None:
            return await self.go_on()
        over = self._over()
        await self._answers.approve(approval, answer)
        if over is not None and approval.task_id is None:  # what commands did was left to settle, no more
            return over if await self._dispatcher.run_queue() else "awaiting_approval"
        if approval.task_id is None:
            return await self.go_on()
        self._tasks.go_on()
        return await self.go_on() if self._session.state.queue else "deferred"

    async def proposal(self) -> str | None:
        """What the open question would write or run, for the user to change; None if it can't be changed."""
        approval = self._session.state.approval
        return await self._dispatcher.proposal(approval) if approval and approval.editable else None

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        """The user's answer to the open consultation; what it says is done."""
        if self._session.state.consultation is None or self._session.state.request is None:
            return await self.go_on()
        return await self._settle(self._choose(way))

    async def _choose(self, way: ChooseWay) -> RequestOutcome:
        outcome = await self._answers.choose(way)
        return outcome if outcome is not None else await self._turn.work()

    def rate(self, rating: int) -> bool:
        """How the user liked the last request, from 1 to 10; False if there was none (J7)."""
        last = self._session.state.finished or self._session.state.request
        if last is None:
            return False
        self._session.record(RequestRated(request_id=last.request_id, rating=rating))
        return True

    def ask(self, kind: ConsultationKind, **values: JsonValue) -> RequestOutcome:
        """Put a question of the program's own to the user, and stop there."""
        self._session.record(consult(self._session.state, kind, "", **values))
        return self._finish("consultation")

    def remind(self) -> RequestOutcome:
        """Nothing was answered: the question stays open, and is shown again."""
        state = self._session.state
        if state.approval is not None:
            self._session.record(ApprovalRequested(approval=state.approval))
            return self.wait_for_answer()
        if (asked := state.consultation) is not None:
            self._session.record(ConsultationRequested(kind=asked.kind, consultation=asked))
        return self._finish("not_satisfied" if asked and asked.kind == "escalation" else "consultation")

    def wait_for_answer(self) -> RequestOutcome:
        """The request stops at the approval that the background has asked for."""
        return self._finish("awaiting_approval")

    async def stop_commands(self) -> None:
        """Between requests: stop the commands that go on, and offer what they did (G11)."""
        await shielded(self._dispatcher.settle_background(cancelled=True))

    async def go_on(self) -> RequestOutcome:
        """Work on the open request."""
        return await self._settle(self._turn.work())

    async def answer_in_words(self, said: str) -> RequestOutcome:
        """The user's answer to what is open, as they said it; what is no clear answer is asked again."""
        state = self._session.state
        if state.approval is not None:
            answer = read_answer(said)
            return await self.answer(answer) if answer is not None else self.remind()
        way = read_choice(said, state.consultation) if state.consultation is not None else None
        return await self.choose(way) if way is not None else self.remind()

    async def let_background_end(self, outcome: RequestOutcome) -> RequestOutcome:
        """Let the background end its list; if the model waited for it, it goes on after that."""
        while outcome in ("deferred", "pending_user") and self._session.state.background_runs:
            await self._tasks.wait()
            if self._session.state.approval is not None:
                return self.wait_for_answer()
            if outcome == "pending_user":
                return outcome
            outcome = await self.go_on()
        return outcome

    async def _begin(self, said: UserMessage, files: Sequence[str], *, fresh: bool) -> RequestOutcome:
        """Work, after a look at what is known; a small model need not ask for the files the user named."""
        if fresh:
            await self._memory.recall(said.text)
        await self._dispatcher.look_at_mentions(said.text)
        traits = await self._model.traits()
        if said.pictures and not traits.sees:
            paths = ", ".join(picture.path for picture in said.pictures)
            values: dict[str, JsonValue] = {"model": traits.name, "paths": paths}
            self._session.record(ErrorReported(key="pictures.not_seen", values=values, notice=True))
        if traits.small:
            await self._dispatcher.run_now(reads_of_named(said.text, files))
        return await self._turn.work()

    async def _settle(self, work: Coroutine[None, None, RequestOutcome]) -> RequestOutcome:
        """Let the work end, one way or another, and write down which."""
        try:
            try:
                outcome = await work
            except UserError as error:
                outcome = await self._end_in(error)
        except asyncio.CancelledError:
            await shielded(self._dispatcher.settle_background(cancelled=True))
            self._finish("interrupted")
            raise
        if outcome in ENDED:
            await self._dispatcher.settle_background()
        return self._finish(outcome)

    async def _end_in(self, error: UserError) -> RequestOutcome:
        """How the work ends with an error; what was done before it is kept and judged (A6, M3)."""
        report, request = ErrorReported.of(error), self._session.state.request
        if isinstance(error, RulesTooLong):
            self._session.record(consult(self._session.state, "rules", error.key, **report.values))
            return "consultation"
        if isinstance(error, ProviderError) and request is not None and request.acted:
            return await self._turn.settle(error)
        self._session.record(report)
        return "provider_error" if isinstance(error, ProviderError) else "pending_user"

    def _over(self) -> RequestOutcome | None:
        """How the request ended, if no more work is to be done on it."""
        request, finished = self._session.state.request, self._session.state.finished
        if request is None:
            return finished.outcome if finished else "done"
        return request.outcome if request.outcome in ("interrupted", "pending_user") else None

    def _finish(self, outcome: RequestOutcome) -> RequestOutcome:
        request = self._session.state.request
        if request is not None:
            self._turn.end(outcome)
            self._session.record(*self._memory.learned(request, outcome), _finished(request, outcome))
        return outcome


def _finished(request: Request, outcome: RequestOutcome) -> RequestFinished:
    """How a request ended, with what is worth knowing of it later."""
    objective = request.objective
    evaluation = objective.evaluation
    judged = evaluation is not None and evaluation.by != "nobody"
    return RequestFinished(
        request_id=request.request_id,
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        profile=request.profile,
        loops=request.loops,
        limit=request.limit.limit if request.limit else None,
        attempts=len(objective.attempts),
        satisfaction=objective.satisfaction if judged else None,
    )
