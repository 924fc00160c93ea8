"""Consultations: when the program asks the user how to go on, and what each answer does."""

from duckflow.domain.commands import ChooseWay
from duckflow.domain.consultation import CHOICES, Consultation
from duckflow.domain.events import ConsultationRequested
from duckflow.domain.state import AgentState
from duckflow.domain.text import cut

_WISHES = {
    "analyse": (
        "The user wants to look for the cause together. Explain from the evidence what failed and why, "
        "and ask the one question that would settle it."
    ),
    "simplify": (
        "The user wants it simpler. Do the smallest part of the request that works, and say what is left out."
    ),
    "different_way": "The user wants an entirely different way. Do not repeat what failed: {failed}.",
}


def over_exertion(state: AgentState) -> ConsultationRequested:
    """Too many errors that were not made good."""
    failing = state.request.failing if state.request else ()
    return ConsultationRequested(
        kind="over_exertion",
        consultation=Consultation(
            consultation_id=f"c{state.seq + 1}",
            kind="over_exertion",
            situation="consultation.over_exertion",
            values={"failing": cut(", ".join(failing), 200)},
            choices=CHOICES["over_exertion"],
        ),
    )


def wish(state: AgentState, answer: ChooseWay) -> str:
    """What the model is told of the answer."""
    failing = ", ".join(state.request.failing) if state.request else ""
    told = _WISHES.get(answer.choice, "").replace("{failed}", failing or "what was tried")
    return f"{told} {answer.text}".strip()
