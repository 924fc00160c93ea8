"""A model at arm's length: the prompt is shown or saved, and a person brings the answer (SPEC K2)."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import NamedTuple

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.llm.streams import MAX_ANSWER_BYTES


async def _show_nothing(prompt: str) -> None:
    """Without a person, a prompt is shown nowhere."""


async def _nobody_answers() -> str:
    raise ProviderError("llm.relay_headless")


class Relay(NamedTuple):
    """The two ways between the model and the person; the defaults refuse, where no person can be asked."""

    show: Callable[[str], Awaitable[None]] = _show_nothing
    read: Callable[[], Awaitable[str]] = _nobody_answers


class RelayModel:
    """Any model a person can reach. A call takes as long as the person does: no time limit applies."""

    def __init__(self, relay: Relay, traits: ModelTraits) -> None:
        self._relay = relay
        self.traits = traits

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelPiece]:
        """The person's answer, in one piece."""
        await self._relay.show(write_out(request.messages))
        text = await self._relay.read()
        if len(text.encode("utf-8", "replace")) > MAX_ANSWER_BYTES:
            raise ProviderError("llm.too_large", address="relay", detail=f"{len(text)} characters")
        if text:
            yield TextPiece(text=text)
        yield StreamEnd()

    async def aclose(self) -> None:
        """There is nothing to close."""


def write_out(messages: tuple[ChatMessage, ...]) -> str:
    """A prompt as text to copy. A chat has one field, so a single turn stands without a heading."""
    if len(messages) == 1:
        return messages[0].text
    return "\n\n".join(f"## {message.role}\n\n{message.text}" for message in messages)
