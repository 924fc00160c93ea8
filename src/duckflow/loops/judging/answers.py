"""Carries out answers to approvals and consultations. Effects are in `domain/questions/consultation.py`."""

from dataclasses import dataclass

from duckflow.domain.decision import Action
from duckflow.domain.events import ApprovalAnswered, ConsultationAnswered, Reply
from duckflow.domain.questions.approval import AnswerApproval, Approval
from duckflow.domain.questions.consultation import ChoiceEffect, ChooseWay, Consultation, effect_of
from duckflow.domain.work.outcomes import RequestOutcome
from duckflow.i18n.catalogue import text
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.judging.advice import find_cause, progress_text, second_opinion
from duckflow.loops.judging.consultation import wish
from duckflow.loops.pacing import Pacing
from duckflow.loops.session import SessionPart
from duckflow.loops.steps import Steps
from duckflow.loops.thinking.advisor import Advisor


@dataclass(eq=False)
class UserAnswers(SessionPart):
    """Carries out answers. Gets advice before it records an answer, so that a failure changes nothing."""

    _dispatcher: Dispatcher
    _advisor: Advisor
    _steps: Steps
    _pacing: Pacing

    async def approve(self, approval: Approval, answer: AnswerApproval, *, stops: bool = False) -> None:
        """Record the answer to an approval, with the action that the user may have edited.

        With `stops`, the user stopped the work instead of answering.
        """
        if answer.edited is not None:
            answered = await self._dispatcher.edit(approval, answer.edited)
        else:
            answered = ApprovalAnswered(
                approval_id=approval.approval_id,
                yes=answer.yes,
                reason=answer.reason,
                allowed=approval.kind if answer.yes and answer.always else None,
                stopped=stops,
            )
        if answered.yes or approval.task_id is not None:
            self._session.record(answered)
        else:
            await self._dispatcher.refuse(answered)
        if approval.task_id is None:
            self._steps.answer_approval(yes=answered.yes)

    async def choose(self, consultation: Consultation, answer: ChooseWay) -> RequestOutcome | None:
        """Carry out the answer to a consultation. Return the outcome, None if the work continues."""
        effect = effect_of(answer.choice)
        found = await self._find_out(effect, answer)
        told = "" if effect.ends in ("accepted", "stopped") else wish(self._state, answer, found)
        asked_back = effect.needs_words and not answer.text.strip()
        reply = self._reply(answer, effect, found, asked_back=asked_back)
        self._session.record(
            ConsultationAnswered(consultation_id=consultation.consultation_id, answer=answer, told=told),
            *((Reply(text=reply),) if reply else ()),
        )
        self._pacing.answered(consultation.kind)
        if effect.ends == "accepted":
            self._steps.accept()
        if effect.ends is not None:
            return effect.ends
        if effect.forbids or effect.clears or effect.plans or effect.restarts:
            self._steps.plan("the user said how to go on")
        if effect.plans and (request := self._state.request) is not None:
            # If no plan is made, the model still knows to do the smallest part first.
            goal, reason = request.objective.request, "the user wants it divided"
            propose = Action(operation="plan_tool.propose", args={"goal": goal}, reasoning=reason)
            await self._dispatcher.run_now((propose,))
        return "pending_user" if effect.analyses or asked_back else None

    async def _find_out(self, effect: ChoiceEffect, answer: ChooseWay) -> str:
        if effect.analyses:
            return await find_cause(self._advisor, self._state, answer.text)
        if effect.reviews:
            return await second_opinion(self._advisor, self._state, answer.text)
        return progress_text(self._state) if effect.sums_up else ""

    def _reply(self, answer: ChooseWay, effect: ChoiceEffect, found: str, *, asked_back: bool) -> str:
        if asked_back:
            return text(f"consultation.ask.{answer.choice}")
        if effect.ends == "pending_user":
            return text("consultation.resting")
        return f"{found}\n\n{text('consultation.your_word')}" if effect.analyses else found
