"""A prompt that is ready to be sent, what each of its parts takes, and the shape of its answer."""

from typing import Literal

from duckflow.domain.model import ChatMessage, JsonSchema, ModelRequest, PromptUse

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


def object_schema(**properties: JsonSchema) -> JsonSchema:
    """An object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def question_messages(output: str, system: str, text: str) -> tuple[ChatMessage, ...]:
    """A side question: the fixed text, which repeats from call to call, and what it is about this time."""
    return (
        ChatMessage(role="system", text=system, stable=True),
        ChatMessage(role="user", text=f"{text}\n\nOutput: {output}"),
    )
