"""The chat loop: what the user says becomes a request, and every way of ending it is written down."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence

from pydantic import JsonValue

from duckflow.domain.commands import ChooseWay
from duckflow.domain.errors import ProviderError, UserError
from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ApprovalRequested,
    ConsultationRequested,
    ErrorReported,
    RequestFinished,
    RequestRated,
    Transition,
    UserMessage,
)
from duckflow.domain.state import Request, RequestOutcome
from duckflow.domain.transitions import Step
from duckflow.loops.judging.consultation_answers import ConsultationAnswers
from duckflow.loops.session import Session
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.first_look import FirstLook
from duckflow.loops.thinking.memory import SessionMemory
from duckflow.loops.thinking.small_models import files_note
from duckflow.loops.turn import Turn
from duckflow.services.decide import ModelCall

EXIT_CODES: dict[RequestOutcome, int] = {
    "done": 0,
    "not_satisfied": 1,
    "stopped": 1,
    "pending_user": 3,
    "deferred": 3,
    "awaiting_approval": 3,
    "consultation": 3,
    "provider_error": 4,
    "interrupted": 130,
}
_GOES_ON = ("pending_user", "deferred", "awaiting_approval", "consultation", "not_satisfied")
"""Outcomes after which the next message belongs to the same request."""


class ChatLoop:
    """Takes what the user says or answers and works until the request ends or needs the user again."""

    def __init__(
        self,
        session: Session,
        turn: Turn,
        answering: ConsultationAnswers,
        look: FirstLook,
        memory: SessionMemory,
        tasks: TaskLoop,
    ) -> None:
        self._session = session
        self._turn = turn
        self._answering = answering
        self._look = look
        self._memory = memory
        self._tasks = tasks

    async def say(self, text: str) -> RequestOutcome:
        """A message: a new request, or more on the one that waits."""
        state = self._session.state
        request_id = _request_id(state.request)
        fresh = state.request is None or state.request.request_id != request_id
        if state.step == Step.AWAITING_APPROVAL or (fresh and state.step != Step.PLANNING):
            self._move(Step.PLANNING, "a new request" if fresh else "the user said something else")
        files = await self._look.files()
        note = files_note(files)
        told = "" if note == state.files_note else note
        self._session.record(UserMessage(request_id=request_id, text=text, note=told))
        if fresh:
            self._turn.begin()
        return await self._settle(self._first_look(text, files, fresh=fresh))

    async def answer(
        self, *, yes: bool, reason: str = "", always: bool = False, edited: str | None = None
    ) -> RequestOutcome:
        """The user's answer to the open approval; the work goes on from there."""
        approval = self._session.state.approval
        if approval is None:
            return await self.go_on()
        if edited is not None:
            answered = await self._answering.edit(approval, edited)
        else:
            kind = approval.kind if yes and always else None
            answered = ApprovalAnswered(
                approval_id=approval.approval_id, yes=yes, reason=reason, allowed=kind
            )
        if approval.task_id is not None:
            self._session.record(answered)
            self._tasks.go_on()
            return "deferred" if not self._session.state.queue else await self.go_on()
        refused = () if answered.yes else (self._refusal(reason),)
        self._session.record(answered, *refused)
        self._move(*((Step.EXECUTION, "approved") if answered.yes else (Step.PLANNING, "not approved")))
        return await self.go_on()

    async def proposal(self) -> str | None:
        """What the open question would write or run, for the user to change; None if it can't be changed."""
        approval = self._session.state.approval
        return await self._answering.proposal(approval) if approval and approval.editable else None

    async def choose(self, answer: ChooseWay) -> RequestOutcome:
        """The user's answer to the open consultation; what it says is done."""
        if self._session.state.consultation is None or self._session.state.request is None:
            return await self.go_on()
        return await self._settle(self._take(answer))

    async def _take(self, answer: ChooseWay) -> RequestOutcome:
        outcome = await self._answering.take(answer)
        return outcome if outcome is not None else await self._turn.work()

    def rate(self, rating: int) -> bool:
        """How the user liked the last request, from 1 to 10; False where there was none (SPEC J7)."""
        last = self._session.state.finished or self._session.state.request
        if last is None:
            return False
        self._session.record(RequestRated(request_id=last.request_id, rating=rating))
        return True

    def remind(self) -> RequestOutcome:
        """Nothing was answered: the question stays open, and is shown again."""
        state = self._session.state
        if state.approval is not None:
            self._session.record(ApprovalRequested(approval=state.approval))
            return self._finish("awaiting_approval")
        asked = state.consultation
        if asked is not None:
            self._session.record(ConsultationRequested(kind=asked.kind, consultation=asked))
        escalated = asked is not None and asked.kind == "escalation"
        return self._finish("not_satisfied" if escalated else "consultation")

    def _move(self, end: Step, reason: str) -> None:
        start = self._session.state.step
        self._session.record(Transition(start=start, end=end, by="program", reason=reason))

    def _refusal(self, reason: str) -> ActionFinished:
        action, *rest = self._session.state.queue
        return ActionFinished(
            action_id="",
            operation=action.operation,
            outcome="refused",
            text=f"The user said no: {reason}" if reason else "The user said no.",
            evidence_id=self._session.next_evidence_id(),
            not_run=tuple(left.operation for left in rest),
        )

    async def go_on(self) -> RequestOutcome:
        """Work on the open request."""
        return await self._settle(self._turn.work())

    async def _first_look(self, text: str, files: Sequence[str], *, fresh: bool) -> RequestOutcome:
        if fresh:
            await self._memory.recall(text)
        await self._look.read_named(text, files)
        return await self._turn.work()

    async def _settle(self, work: Coroutine[None, None, RequestOutcome]) -> RequestOutcome:
        """Let the work end, one way or another, and write down which."""
        try:
            outcome = await work
        except UserError as error:
            await self._give_up(error)
            outcome = "provider_error" if isinstance(error, ProviderError) else "pending_user"
        except asyncio.CancelledError:
            self._finish("interrupted")
            raise
        return self._finish(outcome)

    async def _give_up(self, error: UserError) -> None:
        """Tell what only the user can mend."""
        if isinstance(error, ProviderError) and error.usage is not None:
            await self._turn.spent(ModelCall(output="Decision", tokens=error.usage))
        values: dict[str, JsonValue] = {name: str(value) for name, value in error.values.items()}
        self._session.record(ErrorReported(key=error.key, values=values))

    def _finish(self, outcome: RequestOutcome) -> RequestOutcome:
        request = self._session.state.request
        if request is not None:
            self._turn.end(outcome)
            self._session.record(*self._memory.learned(request, outcome), _finished(request, outcome))
        return outcome


def _finished(request: Request, outcome: RequestOutcome) -> RequestFinished:
    """How a request ended, with what is worth knowing of it later."""
    objective = request.objective
    judged = objective is not None and objective.evaluation is not None
    return RequestFinished(
        request_id=request.request_id,
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        profile=request.profile,
        loops=request.loops,
        limit=request.limit.limit if request.limit else None,
        attempts=len(objective.attempts) if objective else 0,
        satisfaction=objective.satisfaction if objective and judged else None,
    )


def _request_id(request: Request | None) -> str:
    if request is not None and request.outcome in _GOES_ON:
        return request.request_id
    return f"r_{secrets.token_hex(4)}"
