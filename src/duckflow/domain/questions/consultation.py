"""A consultation: one question to the user, its situation and choices. Kinds differ in data, not in code."""

from typing import Literal

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen
from duckflow.domain.lines import TextLine

ConsultationKind = Literal[
    "stagnation", "lost_confidence", "confusion", "over_exertion", "oracle", "escalation", "rules", "unknown"
]

RulesUse = Literal["whole", "cut", "none"]
"""How much of the project's rules the model gets."""

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
]

CHOICES: dict[ConsultationKind, tuple[Choice, ...]] = {
    "stagnation": ("stop", "more_information", "go_on", "another_approach"),
    "lost_confidence": ("detail", "divide", "other_source", "go_on"),
    "confusion": ("most_important", "reset", "sort_out", "another_angle"),
    "over_exertion": ("accept", "analyse", "simplify", "different_way"),
    "oracle": ("instruct", "second_opinion", "rest"),
    "escalation": ("more_detail", "another_approach", "accept", "technical_help", "stop"),
    "rules": ("cut_rules", "leave_rules_out", "stop"),
    "unknown": ("go_on", "stop"),
}
"""What the user may choose, in the order shown; the catalogues say each in words (SPEC I6, H6, J5)."""


class ChoiceEffect(Frozen):
    """What a choice does, besides what the model is told of it."""

    ends: Literal["accepted", "stopped", "pending_user"] | None = None
    """How the work on the request ends with it, if it does."""
    forbids: bool = False
    """What was tried counts as failed: the same lists of actions are refused from now on."""
    clears: bool = False
    """The approach goes: plan, questions and pattern; goal, constraints and evidence stay."""
    restarts: bool = False
    """What the user adds becomes part of the request, whose requirements are drawn again."""
    redraws: bool = False
    """The request is another one now: its requirements are drawn again, also if the user adds no words."""
    leads: bool = False
    """What the user names is the first requirement; all others can wait."""
    plans: bool = False
    """The work is divided into a plan before it goes on."""
    sums_up: bool = False
    """What there is is put in order for the user and the model before it goes on."""
    analyses: bool = False
    """The failure is analysed for the user, who then says how to go on."""
    reviews: bool = False
    """Another model looks at it, and its word goes to the one that works."""
    rules: RulesUse | None = None
    """What becomes of the project's rules, which are too long."""
    needs_words: bool = False
    """Only the user's own words make it worth anything: asked for if there are none."""


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
}
"""Tested choice by choice by what differs afterwards."""


def effect_of(choice: str) -> ChoiceEffect:
    """What a choice does; words alone are more on the request."""
    known: dict[str, ChoiceEffect] = {**EFFECTS}
    return known.get(choice, ChoiceEffect(restarts=True))


class Consultation(Frozen):
    """The question. `situation` is a catalogue key whose slots `values` fill; `findings` are the reasons."""

    consultation_id: str
    kind: ConsultationKind
    situation: str
    values: dict[str, JsonValue] = Field(default_factory=dict)
    findings: tuple[TextLine, ...] = ()
    choices: tuple[str, ...]


class ChooseWay(Frozen):
    """The user's answer to the open consultation: one of its choices, or only words of their own."""

    choice: str = ""
    text: str = ""
