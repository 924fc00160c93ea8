"""The chat loop: turns messages into requests, and records how each request ends."""

import asyncio
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from duckflow.domain import events
from duckflow.domain.commands import SayMessage
from duckflow.domain.errors import ProviderError, UserError
from duckflow.domain.model import Picture
from duckflow.domain.questions.approval import AnswerApproval
from duckflow.domain.questions.consultation import ChooseWay, Consultation, ConsultationKind
from duckflow.domain.state import Request
from duckflow.domain.text import one_line
from duckflow.domain.work.outcomes import ENDED, RequestOutcome
from duckflow.i18n.answers import read_answer, read_choice
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.judging.answers import UserAnswers
from duckflow.loops.judging.consultation import consult
from duckflow.loops.session import SessionPart
from duckflow.loops.task_loop import TaskLoop
from duckflow.loops.thinking.memory import SessionMemory
from duckflow.loops.thinking.messages import MessageReader
from duckflow.loops.thinking.rules import RulesTooLong
from duckflow.loops.turn import Turn
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
_NAME = 60


@dataclass(eq=False)
class ChatLoop(SessionPart):
    """Takes messages and answers, and works until the request ends or the user must decide something."""

    _turn: Turn
    _answers: UserAnswers
    _reader: MessageReader
    _dispatcher: Dispatcher
    _memory: SessionMemory
    _tasks: TaskLoop

    async def say(self, text: str, pictures: Sequence[Picture] = ()) -> RequestOutcome:
        """Take a message, which begins a request or adds to the waiting one. A hook can refuse it."""
        request = self._state.request
        request_id = request.request_id if request else f"r_{secrets.token_hex(4)}"
        read = await self._reader.read(text, request_id, pictures)
        if read is None:
            return "stopped"
        message, problems = read
        self._turn.begin(message, *problems)
        return await self._settle(self._begin(message, new=request is None))

    async def answer(self, answer: AnswerApproval) -> RequestOutcome:
        """Take the user's answer to the open approval, and continue the work."""
        approval = self._state.approval
        if approval is None:
            return await self.go_on()
        over = self._over()
        await self._answers.approve(approval, answer)
        if approval.task_id is not None:
            self._tasks.go_on()
            request = self._state.request
            if self._state.asks_instead and request is not None and request.outcome == "deferred":
                await self._tasks.wait()  # the list ends with the refused task
                return await self.go_on()
            return await self.go_on() if self._state.queue else "deferred"
        if over is None:
            return await self.go_on()
        # The request had ended or was stopped; only the effects of commands waited for approval.
        if not await self._dispatcher.run_queue():
            return "awaiting_approval"
        if answer.yes or not answer.reason.strip():
            return over
        return await (self.go_on() if self._state.request is not None else self.say(answer.reason))

    async def decline(self) -> RequestOutcome:
        """Stop the work at the open approval, which counts neither as a yes nor as a no to the draft."""
        over = self._over()
        if (approval := self._state.approval) is not None:
            await self._answers.approve(approval, AnswerApproval(yes=False), stops=True)
            if approval.task_id is not None:
                self._tasks.go_on()
                return "deferred"
        await shielded(self._dispatcher.settle_background(cancelled=True))
        if over is None:
            self.interrupt()
        return over or "interrupted"

    async def proposal(self) -> str | None:
        """Return the text that the open approval would write or run; None if the user can't edit it."""
        approval = self._state.approval
        return await self._dispatcher.proposal(approval) if approval and approval.editable else None

    async def choose(self, way: ChooseWay) -> RequestOutcome:
        """Carry out the user's answer to the open consultation."""
        consultation = self._state.consultation
        if consultation is None or self._state.request is None:
            return await self.go_on()
        return await self._settle(self._choose(consultation, way))

    async def _choose(self, consultation: Consultation, way: ChooseWay) -> RequestOutcome:
        outcome = await self._answers.choose(consultation, way)
        return outcome if outcome is not None else await self._turn.work()

    def rate(self, rating: int) -> bool:
        """Record the user's rating of the last request, from 1 to 10. Return False if there was none (J7)."""
        last = self._state.finished or self._state.request
        if last is None:
            return False
        self._session.record(events.RequestRated(request_id=last.request_id, rating=rating))
        return True

    def ask(self, kind: ConsultationKind, **values: JsonValue) -> RequestOutcome:
        """Ask the user a question from the program, and stop working."""
        self._session.record(consult(self._state, kind, "", alone=False, **values))
        return self._finish("consultation")

    def remind(self) -> RequestOutcome:
        """Show the open question again."""
        state = self._state
        if state.approval is not None:
            self._session.record(events.ApprovalRequested(approval=state.approval))
            return self._finish("awaiting_approval")
        if (asked := state.consultation) is not None:
            self._session.record(events.ConsultationRequested(kind=asked.kind, consultation=asked))
        return self._finish("not_satisfied" if asked and asked.kind == "escalation" else "consultation")

    def interrupt(self) -> None:
        """End the work as stopped by the user, and say what still runs. Their last words are kept (C4)."""
        request, unheard = self._state.request, self._session.unheard
        if request is not None:
            self._session.record(
                *(
                    events.UserMessage(request_id=request.request_id, text=one.text, pictures=one.pictures)
                    for one in unheard
                    if isinstance(one, SayMessage)
                )
            )
        unheard.clear()
        self._finish("interrupted")
        tasks = self._state.task_list.tasks if self._state.background_runs and self._state.task_list else ()
        targets = (task.args.get("command") or task.args.get("path") or task.operation for task in tasks)
        names = [*map(str, targets), *(one.command for one in self._state.background_commands)]
        if names:
            self._session.notify("tasks.still_run", tasks=", ".join(one_line(name, _NAME) for name in names))

    async def end(self, said: str) -> RequestOutcome:
        """End the open request because the user wants no more. What was done stays, and nothing is judged."""
        request = self._state.request
        if request is None:
            return "done"
        self._session.record(events.UserMessage(request_id=request.request_id, text=said))
        self._tasks.cancel()
        await shielded(self._dispatcher.settle_background(cancelled=True))
        if self._state.approval is not None:
            return self._finish("awaiting_approval")
        if not request.acted:
            return self._finish("stopped")
        self._session.notify("stopped.ended")
        return self._finish("accepted")

    async def stop_commands(self) -> None:
        """Stop background commands between requests, and ask the user about their effects (G11)."""
        await shielded(self._dispatcher.settle_background(cancelled=True))

    async def go_on(self) -> RequestOutcome:
        """Continue the open request."""
        return await self._settle(self._turn.work())

    async def answer_in_words(self, said: str) -> RequestOutcome:
        """Take an answer in the user's own words. If it is unclear, show the question again."""
        state = self._state
        if state.approval is not None:
            answer = read_answer(said)
            return await self.answer(answer) if answer is not None else self.remind()
        way = read_choice(said, state.consultation) if state.consultation is not None else None
        return await self.choose(way) if way is not None else self.remind()

    async def let_background_end(self, outcome: RequestOutcome) -> RequestOutcome:
        """Wait for the background tasks, then continue the work if the model waited for them."""
        while outcome in ("deferred", "pending_user") and self._state.background_runs:
            await self._tasks.wait()
            if self._session.words is not None:
                outcome = await self.go_on()
                continue
            if self._state.approval is not None:
                return self._finish("awaiting_approval")
            if outcome == "pending_user":
                return outcome
            outcome = await self.go_on()
        return outcome

    async def _begin(self, said: events.UserMessage, *, new: bool) -> RequestOutcome:
        if new:
            await self._memory.recall(said.text)
        await self._reader.look_ahead(said)
        return await self._turn.work()

    async def _settle(self, work: Coroutine[None, None, RequestOutcome]) -> RequestOutcome:
        try:
            try:
                outcome = await work
            except UserError as error:
                outcome = await self._end_in(error)
        except asyncio.CancelledError:
            await shielded(self._dispatcher.settle_background(cancelled=True))
            self.interrupt()
            raise
        if outcome in ENDED:
            await self._dispatcher.settle_background()
        return self._finish(outcome)

    async def _end_in(self, error: UserError) -> RequestOutcome:
        """Return the outcome after an error. If the model failed, the work done so far is judged (A6, M3)."""
        report, request = events.ErrorReported.of(error), self._state.request
        if isinstance(error, RulesTooLong):
            self._session.record(consult(self._state, "rules", error.key, alone=False, **report.values))
            return "consultation"
        if isinstance(error, ProviderError) and request is not None and request.acted:
            return await self._turn.settle(error)
        self._session.record(report)
        return "provider_error" if isinstance(error, ProviderError) else "pending_user"

    def _over(self) -> RequestOutcome | None:
        """Return the outcome if the request needs no more work; None otherwise."""
        request, finished = self._state.request, self._state.finished
        if request is None:
            return finished.outcome if finished else "done"
        return request.outcome if request.outcome in ("interrupted", "pending_user") else None

    def _finish(self, outcome: RequestOutcome) -> RequestOutcome:
        request = self._state.request
        if request is not None:
            self._turn.end(outcome)
            self._session.record(*self._memory.learned(request, outcome), _finished(request, outcome))
        return outcome


def _finished(request: Request, outcome: RequestOutcome) -> events.RequestFinished:
    objective = request.objective
    evaluation = objective.evaluation
    judged = evaluation is not None and evaluation.by != "nobody"
    return events.RequestFinished(
        request_id=request.request_id,
        outcome=outcome,
        exit_code=EXIT_CODES[outcome],
        profile=request.profile,
        loops=request.loops,
        limit=request.limit.limit if request.limit else None,
        attempts=len(objective.attempts),
        satisfaction=objective.satisfaction if judged else None,
    )
