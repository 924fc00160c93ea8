"""What the user's answer to a consultation does, by the table in `domain/consultation.py`."""

from collections.abc import Callable

from duckflow.domain.approval import Approval
from duckflow.domain.commands import ChooseWay
from duckflow.domain.consultation import ChoiceEffect, effect_of
from duckflow.domain.decision import Action
from duckflow.domain.events import ApprovalAnswered, ConsultationAnswered, Reply, Transition
from duckflow.domain.state import AgentState, RequestOutcome
from duckflow.domain.transitions import Step
from duckflow.i18n.catalogue import text
from duckflow.loops.acting.dispatcher import Dispatcher
from duckflow.loops.judging.advice import Advice
from duckflow.loops.judging.consultation import wish
from duckflow.loops.judging.progress_summary import progress_text
from duckflow.loops.session import Session


class ConsultationAnswers:
    """Takes an answer. Advice is sought before the answer is written down, so that nothing is half done."""

    def __init__(
        self,
        session: Session,
        dispatcher: Dispatcher,
        advice: Advice,
        accept: Callable[[], None],
        answered: Callable[[], None],
    ) -> None:
        self._session = session
        self._dispatcher = dispatcher
        self._advice = advice
        self._accept = accept
        self._answered = answered

    @property
    def _state(self) -> AgentState:
        return self._session.state

    async def edit(self, approval: Approval, text: str) -> ApprovalAnswered:
        """A yes to what the user made of an action."""
        return await self._dispatcher.edit(approval, text)

    async def proposal(self, approval: Approval) -> str | None:
        """What an open question would write or run, for the user to change."""
        return await self._dispatcher.proposal(approval)

    async def take(self, answer: ChooseWay) -> RequestOutcome | None:
        """Do what the answer says; None where the work goes on."""
        consultation = self._state.consultation
        if consultation is None:
            return None
        effect = effect_of(answer.choice)
        found = await self._find_out(effect, answer)
        told = "" if effect.ends in ("done", "stopped") else wish(self._state, answer, found)
        asked_back = effect.needs_words and not answer.text.strip()
        reply = self._reply(answer, effect, found, asked_back=asked_back)
        self._session.record(
            ConsultationAnswered(consultation_id=consultation.consultation_id, answer=answer, told=told),
            *((Reply(text=reply),) if reply else ()),
        )
        self._answered()
        if effect.ends is not None:
            return self._end(effect)
        self._turn_round(effect)
        if effect.plans:
            await self._plan()
        return "pending_user" if effect.analyses or asked_back else None

    async def _find_out(self, effect: ChoiceEffect, answer: ChooseWay) -> str:
        """What the choice wants known before the work goes on."""
        if effect.analyses:
            return await self._advice.find_cause(answer.text)
        if effect.reviews:
            return await self._advice.second_opinion(answer.text)
        return progress_text(self._state) if effect.sums_up else ""

    def _reply(self, answer: ChooseWay, effect: ChoiceEffect, found: str, *, asked_back: bool) -> str:
        if asked_back:
            return text(f"consultation.ask.{answer.choice}")
        if effect.ends == "rest":
            return text("consultation.resting")
        return f"{found}\n\n{text('consultation.your_word')}" if effect.analyses else found

    def _end(self, effect: ChoiceEffect) -> RequestOutcome:
        match effect.ends:
            case "done":
                self._accept()
                return "done"
            case "stopped":
                return "stopped"
            case _:
                return "pending_user"

    def _turn_round(self, effect: ChoiceEffect) -> None:
        """Another direction begins with planning."""
        turns = effect.forbids or effect.clears or effect.plans or effect.restarts
        if turns and self._state.step != Step.PLANNING:
            self._session.record(
                Transition(
                    start=self._state.step,
                    end=Step.PLANNING,
                    by="program",
                    reason="the user said how to go on",
                )
            )

    async def _plan(self) -> None:
        """Divide the work; where no plan can be had, the model was told to do the smallest part first."""
        request = self._state.request
        if request is None:
            return
        goal = request.objective.request if request.objective else request.text
        await self._dispatcher.run_now(
            (
                Action(
                    operation="plan_tool.propose", args={"goal": goal}, reasoning="the user wants it divided"
                ),
            )
        )
