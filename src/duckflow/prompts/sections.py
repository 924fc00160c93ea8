"""A prompt that is ready to be sent, and what each of its parts takes."""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from duckflow.domain.frozen import Frozen
from duckflow.domain.model import ModelRequest

SectionName = Literal[
    "base",
    "output",
    "operations",
    "rules",
    "session",
    "conversation",
    "evidence",
    "summaries",
    "main",
    "specialized",
]
"""The parts of a prompt, in the order they are sent; conversation and evidence are one."""


LeftOut = Literal["evidence", "words", "summaries", "open_questions", "plan_brief"]


class RenderedPrompt(Frozen):
    """What a model is asked, and the tokens of each part."""

    request: ModelRequest
    tokens: Mapping[SectionName, int]
    left_out: Mapping[LeftOut, int] = Field(default_factory=dict["LeftOut", int])
    """What did not fit, and how many of it."""
    dropped: tuple[str, ...] = ()
    """The results among it; told only where someone looks at the prompt."""
    recap: str = ""
    """What is said in its place."""
