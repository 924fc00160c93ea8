"""A consultation: one question to the user, with its situation and choices. All kinds use the same code."""

from typing import Literal

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine

ConsultationKind = Literal[
    "stagnation",
    "lost_confidence",
    "confusion",
    "over_exertion",
    "oracle",
    "escalation",
    "rules",
    "unknown",
    "instead",
]
"""Situation of the question. `instead`: the user refused an action, and says what to do instead."""

RulesUse = Literal["whole", "cut", "none"]
"""Part of the project's rules that the model reads."""

Choice = Literal[
    "stop",
    "more_information",
    "go_on",
    "another_approach",
    "detail",
    "divide",
    "other_source",
    "most_important",
    "reset",
    "sort_out",
    "another_angle",
    "accept",
    "analyse",
    "simplify",
    "different_way",
    "instruct",
    "second_opinion",
    "rest",
    "more_detail",
    "technical_help",
    "cut_rules",
    "leave_rules_out",
    "reconsider",
]

CHOICES: dict[ConsultationKind, tuple[Choice, ...]] = {
    "stagnation": ("stop", "more_information", "go_on", "another_approach"),
    "lost_confidence": ("detail", "divide", "other_source", "go_on", "stop"),
    "confusion": ("most_important", "reset", "sort_out", "another_angle", "stop"),
    "over_exertion": ("accept", "analyse", "simplify", "different_way", "stop"),
    "oracle": ("instruct", "second_opinion", "rest", "stop"),
    "escalation": ("more_detail", "another_approach", "accept", "technical_help", "stop"),
    "rules": ("cut_rules", "leave_rules_out", "stop"),
    "unknown": ("go_on", "stop"),
    "instead": ("stop",),
}
"""Choices of the user in each kind of question, in the order shown. Their texts are in the catalogues. Every
list includes stopping."""


class ChoiceEffect(Frozen):
    """Effects of a choice, in addition to the message that the model gets about it."""

    ends: Literal["accepted", "stopped", "pending_user"] | None = None
    """Outcome with which the choice ends the request; None if the work continues."""
    forbids: bool = False
    """True if the current attempt counts as failed. The same actions are refused from now on."""
    clears: bool = False
    """True to discard plan, questions and prompt pattern. Goal, constraints and evidence stay."""
    restarts: bool = False
    """True if the user's words are added to the request, and its requirements are found again."""
    redraws: bool = False
    """True to find the requirements again, even if the user adds no words."""
    leads: bool = False
    """True if the user's words become the first requirement, before all others."""
    plans: bool = False
    """True to divide the work into a plan before it continues."""
    sums_up: bool = False
    """True to summarize the situation for the user and the model before the work continues."""
    analyses: bool = False
    """True to analyse the failure for the user, who then decides how to proceed."""
    reviews: bool = False
    """True to ask another model for a review, which the working model gets."""
    rules: RulesUse | None = None
    """Part of the project's overlong rules that the model reads from now on."""
    reconsiders: bool = False
    """True to show drafts again that the user refused."""
    needs_words: bool = False
    """True if the choice is useless without words of the user, who is then asked for them."""


EFFECTS: dict[Choice, ChoiceEffect] = {
    "stop": ChoiceEffect(ends="stopped"),
    "more_information": ChoiceEffect(restarts=True, needs_words=True),
    "go_on": ChoiceEffect(),
    "another_approach": ChoiceEffect(forbids=True),
    "detail": ChoiceEffect(restarts=True, needs_words=True),
    "divide": ChoiceEffect(plans=True),
    "other_source": ChoiceEffect(reviews=True),
    "most_important": ChoiceEffect(restarts=True, clears=True, leads=True, needs_words=True),
    "reset": ChoiceEffect(clears=True),
    "sort_out": ChoiceEffect(sums_up=True),
    "another_angle": ChoiceEffect(forbids=True),
    "accept": ChoiceEffect(ends="accepted"),
    "analyse": ChoiceEffect(analyses=True),
    "simplify": ChoiceEffect(clears=True, redraws=True),
    "different_way": ChoiceEffect(forbids=True, clears=True),
    "instruct": ChoiceEffect(restarts=True, needs_words=True),
    "second_opinion": ChoiceEffect(reviews=True),
    "rest": ChoiceEffect(ends="pending_user"),
    "more_detail": ChoiceEffect(restarts=True, needs_words=True),
    "technical_help": ChoiceEffect(analyses=True),
    "cut_rules": ChoiceEffect(rules="cut"),
    "leave_rules_out": ChoiceEffect(rules="none"),
    "reconsider": ChoiceEffect(reconsiders=True),
}


def effect_of(choice: str) -> ChoiceEffect:
    """Return the effects of a choice. An answer that is only words is added to the request."""
    known: dict[str, ChoiceEffect] = {**EFFECTS}
    return known.get(choice, ChoiceEffect(restarts=True))


class Consultation(Frozen):
    """One question. `situation` is a catalogue key, `values` fill its slots, `findings` are the reasons."""

    consultation_id: str
    kind: ConsultationKind
    situation: str
    values: dict[str, JsonValue] = Field(default_factory=dict)
    findings: tuple[TextLine, ...] = ()
    choices: tuple[str, ...]


class ChooseWay(Frozen):
    """The user's answer to the open consultation: one of its choices, only words, or both."""

    choice: str = ""
    text: str = ""
