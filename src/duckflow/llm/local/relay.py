"""Relay: a person carries the prompt to any model and brings back the answer (K2)."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.llm.streams import MAX_ANSWER_BYTES


async def _show_nothing(prompt: str) -> None:
    """Do nothing; the default if there is no user interface."""


async def _nobody_answers() -> str:
    raise ProviderError("llm.relay_headless")


class Relay(NamedTuple):
    """Functions that show a prompt to a person and read the answer. The defaults serve headless runs."""

    show: Callable[[str], Awaitable[None]] = _show_nothing
    read: Callable[[], Awaitable[str]] = _nobody_answers


class RelayModel:
    """Any model that a person can reach. Calls have no time limit, since a person answers."""

    def __init__(self, relay: Relay, traits: ModelTraits) -> None:
        self._relay = relay
        self.traits = traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Show the prompt, and yield the person's answer in one piece."""
        await self._relay.show(write_out(request.messages))
        text = await self._relay.read()
        if len(text.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
            raise ProviderError("llm.too_large", address="relay", detail=f"{len(text)} characters")
        if text:
            yield TextPiece(text=text)
        yield StreamEnd()

    async def aclose(self) -> None:
        """Do nothing: there is no connection to close."""


def write_out(messages: tuple[ChatMessage, ...]) -> str:
    """Return a prompt as text to copy, with a heading for each turn if there are several."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"## {message.role}\n\n{message.text}" for message in messages)
