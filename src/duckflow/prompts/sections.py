"""A prompt that is ready to be sent, and what each of its parts takes."""

from typing import Literal

from duckflow.domain.model import ModelRequest, PromptUse

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


class RenderedPrompt(PromptUse):
    """What a model is asked, and the tokens of each part; `dropped` is told only to those who look at it."""

    request: ModelRequest
