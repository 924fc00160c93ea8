"""The relay: a person carries prompt and answer (K2)."""

import pytest

from duckflow.domain.errors import ProviderError
from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, StreamEnd, TextPiece
from duckflow.i18n.catalogue import text
from duckflow.llm.local import relay
from duckflow.llm.local.relay import Relay, RelayModel

TRAITS = ModelTraits(name="relay")


def asking(*texts: tuple[str, str]) -> ModelRequest:
    return ModelRequest(
        output="Decision", messages=tuple(ChatMessage(role=role, text=said) for role, said in texts)
    )


class Person:
    """Reads what is shown and answers from memory."""

    def __init__(self, answer: str) -> None:
        self.seen: list[str] = []
        self._answer = answer

    async def show(self, prompt: str) -> None:
        self.seen.append(prompt)

    async def read(self) -> str:
        return self._answer


async def collected(person: Relay | None, request: ModelRequest) -> list:
    return [piece async for piece in RelayModel(person, TRAITS).stream(request)]


async def test_K2_the_prompt_is_shown_and_the_answer_is_read():
    person = Person("はい 🦆")
    pieces = await collected(person, asking(("system", "rules"), ("user", "do it")))
    assert pieces == [TextPiece(text="はい 🦆"), StreamEnd()]
    assert person.seen == ["## system\n\nrules\n\n## user\n\ndo it"]


async def test_a_single_message_is_shown_as_it_is():
    person = Person("ok")
    await collected(person, asking(("user", "do it")))
    assert person.seen == ["do it"]


async def test_K2_where_nobody_can_answer_it_says_so():
    with pytest.raises(ProviderError) as caught:
        await collected(None, asking(("user", "hi")))
    assert caught.value.key == "llm.relay_headless"
    text(caught.value.key, **caught.value.values)


async def test_an_endless_answer_is_refused(monkeypatch):
    monkeypatch.setattr(relay, "MAX_ANSWER_BYTES", 10)
    person = Person("あ" * 4)
    with pytest.raises(ProviderError, check=lambda error: error.key == "llm.too_large"):
        await collected(person, asking(("user", "hi")))
