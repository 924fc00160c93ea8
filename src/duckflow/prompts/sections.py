"""A finished prompt, the token count of each part, and the schema of its answer."""

from typing import Literal

from duckflow.domain.model import JsonSchema, ModelRequest, PromptUse

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
"""Parts of a prompt in the order they are sent; conversation and evidence are interleaved."""


class RenderedPrompt(PromptUse):
    """Prompt that is ready to send, with the token count of each part."""

    request: ModelRequest


def object_schema(**properties: JsonSchema) -> JsonSchema:
    """Return the schema of an object with exactly these fields."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }
