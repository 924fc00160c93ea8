"""The chat loop: what the user says becomes a request, and every way of ending it is written down."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence

from pydantic import JsonValue

from duckflow.domain.errors import ProviderError
from duckflow.domain.events import (
    ActionFinished,
    ApprovalAnswered,
    ApprovalRequested,
    ErrorReported,
    RequestFinished,
    Transition,
    UserMessage,
)
from duckflow.domain.state import Request, RequestOutcome
from duckflow.domain.transitions import Step
from duckflow.loops.dispatcher import Dispatcher
from duckflow.loops.model_use import ModelInUse
from duckflow.loops.rails import WorkspaceLook, files_note, reads_of_named
from duckflow.loops.session import Session
from duckflow.loops.turn import Turn
from duckflow.services.decide import Call

EXIT_CODES: dict[RequestOutcome, int] = {
    "done": 0,
    "limit": 1,
    "pending_user": 3,
    "deferred": 3,
    "awaiting_approval": 3,
    "provider_error": 4,
    "interrupted": 130,
}
_GOES_ON = ("pending_user", "deferred", "awaiting_approval")
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
    ) -> None:
        self._session = session
        self._turn = turn
        self._dispatcher = dispatcher
        self._look = look
        self._model = model

    async def say(self, text: str) -> RequestOutcome:
        """A message: a new request, or more on the one that waits."""
        state = self._session.state
        if state.step == Step.DONE:
            self._session.record(
                Transition(start=Step.DONE, end=Step.PLANNING, by="program", reason="a new request")
            )
        files = await self._look.files()
        note = files_note(files)
        self._session.record(
            UserMessage(
                request_id=_request_id(state.request),
                text=text,
                note="" if note == state.files_note else note,
            )
        )
        return await self._settle(self._first_look(text, files))

    async def answer(self, *, yes: bool, reason: str = "") -> RequestOutcome:
        """The user's answer to the open approval; the work goes on from there."""
        state = self._session.state
        approval = state.approval
        if approval is None:
            return await self.go_on()
        answered = ApprovalAnswered(approval_id=approval.approval_id, yes=yes, reason=reason)
        start, end = state.step, Step.EXECUTION if yes else Step.PLANNING
        moved = Transition(start=start, end=end, by="program", reason="approved" if yes else "not approved")
        if yes:
            self._session.record(answered, moved)
        else:
            self._session.record(answered, moved, self._refusal(reason))
        return await self.go_on()

    def remind(self) -> RequestOutcome:
        """Nothing was answered: the question stays open, and is shown again."""
        approval = self._session.state.approval
        if approval is not None:
            self._session.record(ApprovalRequested(approval=approval))
        self._finish("awaiting_approval")
        return "awaiting_approval"

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
        except ProviderError as error:
            await self._give_up(error)
            outcome = "provider_error"
        except asyncio.CancelledError:
            self._finish("interrupted")
            raise
        self._finish(outcome)
        return outcome

    async def _give_up(self, error: ProviderError) -> None:
        if error.usage is not None:
            await self._model.report(Call(output="Decision", tokens=error.usage))
        values: dict[str, JsonValue] = {name: str(value) for name, value in error.values.items()}
        self._session.record(ErrorReported(key=error.key, values=values))

    def _finish(self, outcome: RequestOutcome) -> None:
        request = self._session.state.request
        if request is not None:
            self._session.record(
                RequestFinished(request_id=request.request_id, outcome=outcome, exit_code=EXIT_CODES[outcome])
            )


def _request_id(request: Request | None) -> str:
    if request is not None and request.outcome in _GOES_ON:
        return request.request_id
    return f"r_{secrets.token_hex(4)}"
