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
    ConsultationAnswered,
    ConsultationRequested,
    ErrorReported,
    RequestFinished,
    Transition,
    UserMessage,
)
from duckflow.domain.state import Request, RequestOutcome
from duckflow.domain.transitions import Step
from duckflow.loops.consulting import wish
from duckflow.loops.dispatcher import Dispatcher
from duckflow.loops.model_use import ModelInUse
from duckflow.loops.rails import WorkspaceLook, files_note, reads_of_named
from duckflow.loops.session import Session
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.turn import Turn
from duckflow.services.decide import Call

EXIT_CODES: dict[RequestOutcome, int] = {
    "done": 0,
    "limit": 1,
    "pending_user": 3,
    "deferred": 3,
    "awaiting_approval": 3,
    "consultation": 3,
    "provider_error": 4,
    "interrupted": 130,
}
_GOES_ON = ("pending_user", "deferred", "awaiting_approval", "consultation")
"""Outcomes after which the next message belongs to the same request."""


class ChatLoop:
    """Takes what the user says or answers and works until the request ends or needs the user again."""

    def __init__(
        self,
        session: Session,
        turn: Turn,
        dispatcher: Dispatcher,
        look: WorkspaceLook,
        model: ModelInUse,
        tasks: TaskLoop,
    ) -> None:
        self._session = session
        self._turn = turn
        self._dispatcher = dispatcher
        self._look = look
        self._model = model
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
        return await self._settle(self._first_look(text, files))

    async def answer(self, *, yes: bool, reason: str = "") -> RequestOutcome:
        """The user's answer to the open approval; the work goes on from there."""
        approval = self._session.state.approval
        if approval is None:
            return await self.go_on()
        answered = ApprovalAnswered(approval_id=approval.approval_id, yes=yes, reason=reason)
        if approval.task_id is not None:
            self._session.record(answered)
            self._tasks.go_on()
            return "deferred" if not self._session.state.queue else await self.go_on()
        refused = () if yes else (self._refusal(reason),)
        self._session.record(answered, *refused)
        self._move(Step.EXECUTION if yes else Step.PLANNING, "approved" if yes else "not approved")
        return await self.go_on()

    async def choose(self, answer: ChooseWay) -> RequestOutcome:
        """The user's answer to the open consultation; what it says is done."""
        state = self._session.state
        consultation, request = state.consultation, state.request
        if consultation is None or request is None:
            return await self.go_on()
        told = wish(state, answer)
        self._session.record(
            ConsultationAnswered(consultation_id=consultation.consultation_id, answer=answer)
        )
        if answer.choice == "accept":
            self._turn.accept()
            self._finish("done")
            return "done"
        self._session.record(UserMessage(request_id=request.request_id, text=told))
        return await self.go_on()

    def remind(self) -> RequestOutcome:
        """Nothing was answered: the question stays open, and is shown again."""
        state = self._session.state
        if state.approval is not None:
            self._session.record(ApprovalRequested(approval=state.approval))
            return self._finish("awaiting_approval")
        if state.consultation is not None:
            asked = state.consultation
            self._session.record(ConsultationRequested(kind=asked.kind, consultation=asked))
        return self._finish("consultation")

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

    async def _first_look(self, text: str, files: Sequence[str]) -> RequestOutcome:
        """A small model does not have to ask for the files the user named."""
        if (await self._model.traits()).small:
            await self._dispatcher.run_now(reads_of_named(text, files))
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
            await self._model.spent(Call(output="Decision", tokens=error.usage))
        values: dict[str, JsonValue] = {name: str(value) for name, value in error.values.items()}
        self._session.record(ErrorReported(key=error.key, values=values))

    def _finish(self, outcome: RequestOutcome) -> RequestOutcome:
        request = self._session.state.request
        if request is not None:
            code = EXIT_CODES[outcome]
            self._session.record(
                RequestFinished(request_id=request.request_id, outcome=outcome, exit_code=code)
            )
        return outcome


def _request_id(request: Request | None) -> str:
    if request is not None and request.outcome in _GOES_ON:
        return request.request_id
    return f"r_{secrets.token_hex(4)}"
