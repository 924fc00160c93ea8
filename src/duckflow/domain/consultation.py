"""A consultation: one question to the user, its situation and choices. Kinds differ in data, not in code."""

from typing import Literal

from pydantic import Field, JsonValue

from duckflow.domain.frozen import Frozen

ConsultationKind = Literal[
    "stagnation", "lost_confidence", "confusion", "over_exertion", "oracle", "escalation"
]

CHOICES: dict[ConsultationKind, tuple[str, ...]] = {
    "over_exertion": ("accept", "analyse", "simplify", "different_way"),
}
"""What the user may choose, in the order shown; the catalogues say each in words."""


class Consultation(Frozen):
    """The question. `situation` is a catalogue key whose slots `values` fill."""

    consultation_id: str
    kind: ConsultationKind
    situation: str
    values: dict[str, JsonValue] = Field(default_factory=dict)
    choices: tuple[str, ...]
