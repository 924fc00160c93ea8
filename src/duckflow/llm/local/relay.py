"""Relay: a person carries the prompt to any model and brings back the answer (K2)."""

from collections.abc import AsyncGenerator
from typing import Protocol

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.llm.streams import MAX_ANSWER_BYTES


class Relay(Protocol):
    """Person who is shown a prompt and enters the answer."""

    async def show(self, prompt: str) -> None:
        """Show the prompt."""
        ...

    async def read(self) -> str:
        """Return the answer."""
        ...


class RelayModel:
    """Model whose answers a person enters; `relay` is None without a person. Calls have no time limit."""

    def __init__(self, relay: Relay | None, traits: ModelTraits) -> None:
        self._relay = relay
        self.traits = traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """Show the prompt, and yield the person's answer in one piece."""
        if self._relay is None:
            raise ProviderError("llm.relay_headless")
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
