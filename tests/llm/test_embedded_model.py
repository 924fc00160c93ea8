"""The embedded model with real weights, if few of them, and the real runtime (K2, K4)."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from duckflow.config.settings import EmbeddedSettings
from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import ChatMessage, ModelPiece, ModelRequest, StreamEnd, TextPiece
from duckflow.llm.local.embedded import EmbeddedModel, open_embedded

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Loading is slow, so the tests share one model; each must leave it usable.
WINDOW = 4096


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(two_layers: Path) -> AsyncIterator[EmbeddedModel]:
    opened = await open_embedded(two_layers, EmbeddedSettings(window=WINDOW, threads=1))
    assert isinstance(opened, EmbeddedModel)
    yield opened
    await opened.aclose()


def ask(text: str, **changes: object) -> ModelRequest:
    messages = (ChatMessage(role="system", text="You answer."), ChatMessage(role="user", text=text))
    return ModelRequest.model_validate({"output": "Text", "messages": messages, "max_tokens": 8, **changes})


async def answer(model: EmbeddedModel, request: ModelRequest) -> tuple[str, StreamEnd]:
    pieces: list[ModelPiece] = [piece async for piece in model.stream(request)]
    finished = pieces[-1]
    assert isinstance(finished, StreamEnd)
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)), finished


async def test_text_is_streamed_in_pieces(model):
    pieces = [piece async for piece in model.stream(ask("Count from one to ten."))]
    assert len([piece for piece in pieces if isinstance(piece, TextPiece)]) > 1
    assert isinstance(pieces[-1], StreamEnd)
    assert pieces[-1].usage.input_tokens > 0
    assert 0 < pieces[-1].usage.output_tokens <= 8


async def test_an_answer_that_was_too_long_says_so(model):
    _, finished = await answer(model, ask("Count from one to one hundred.", max_tokens=4))
    assert (finished.stop, finished.usage.output_tokens) == ("length", 4)


async def test_two_calls_in_a_row_give_the_same_answer_and_read_the_prompt_once(model):
    request = ask("Name a bird. " + "It must be a bird that swims. " * 5)
    first, _ = await answer(model, request)
    second, finished = await answer(model, request)
    assert first == second
    # All but the last token, which must be read for there to be a next one.
    assert finished.usage.cached_tokens == finished.usage.input_tokens - 1


async def test_a_prompt_that_begins_alike_is_not_read_from_the_beginning(model):
    beginning = "Here are the rules of the pond. " * 6
    await answer(model, ask(beginning + "Who swims?", max_tokens=1))
    _, finished = await answer(model, ask(beginning + "Who flies?", max_tokens=1))
    assert finished.usage.cached_tokens > finished.usage.input_tokens / 2


async def test_prompts_that_take_turns_are_not_read_anew(model):
    one, other = "The duck has a question. " * 8, "Seven geese went to town. " * 8
    for text in (one, other):
        await answer(model, ask(text, max_tokens=1))
    _, finished = await answer(model, ask(one, max_tokens=1))
    assert finished.usage.cached_tokens > finished.usage.input_tokens / 2


async def test_a_schema_binds_the_answer(model):
    schema = {
        "type": "object",
        "properties": {
            "bird": {"enum": ["duck", "goose"]},
            "legs": {"type": "integer", "minimum": 0, "maximum": 9},
        },
        "required": ["bird", "legs"],
        "additionalProperties": False,
    }
    text, finished = await answer(model, ask("Describe a bird.", answer_schema=schema, max_tokens=60))
    told = json.loads(text)
    assert finished.stop == "end"
    assert told["bird"] in ("duck", "goose")
    assert isinstance(told["legs"], int)


async def test_closing_the_iterator_frees_the_model_for_the_next(model):
    stream = model.stream(ask("Tell a very long story about a pond.", max_tokens=2000))
    assert isinstance(await anext(stream), TextPiece)
    await stream.aclose()
    text, finished = await answer(model, ask("Say hello."))
    assert text
    assert finished.usage.output_tokens <= 8


async def test_cancelling_the_reader_frees_the_model_for_the_next(model):
    begun = asyncio.Event()

    async def read() -> None:
        async for _ in model.stream(ask("Tell a very long story about a lake.", max_tokens=2000)):
            begun.set()

    reader = asyncio.create_task(read())
    await begun.wait()
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert (await answer(model, ask("Say hello.")))[0]


async def test_two_questions_at_once_are_answered_one_after_the_other(model):
    both = await asyncio.gather(answer(model, ask("Name a bird.")), answer(model, ask("Name a fish.")))
    alone = [await answer(model, ask("Name a bird.")), await answer(model, ask("Name a fish."))]
    assert [text for text, _ in both] == [text for text, _ in alone]


async def test_a_prompt_longer_than_the_window_is_refused(model):
    with pytest.raises(ProviderError) as caught:
        await answer(model, ask("quack " * 2 * WINDOW))
    assert caught.value.key == "embedded.prompt_too_long"
    assert caught.value.values["window"] == WINDOW
    assert (await answer(model, ask("Say hello.")))[0]


async def test_the_time_limit_holds_while_the_prompt_is_read(model):
    with pytest.raises(Unavailable) as caught:
        await answer(model, ask("One more thing to consider carefully. " * 400, time_limit_s=0.02))
    assert caught.value.key == "llm.timeout"
    assert (await answer(model, ask("Say hello.")))[0]


async def test_messages_of_one_role_in_a_row_and_broken_characters_are_taken(model):
    messages = tuple(ChatMessage(role="user", text=text) for text in ("A duck", "half a pair: \ud83e", "鴨"))
    request = ModelRequest(output="Text", messages=messages, max_tokens=4)
    assert (await answer(model, request))[1].usage.output_tokens > 0


async def test_tokens_are_counted_by_the_models_own_tokenizer(model):
    """F4."""
    assert await model.count_tokens("hello world") == 2
    assert await model.count_tokens("") == 0
    assert await model.count_tokens("鴨が泳ぐ") > 4


async def test_a_process_that_was_lost_is_replaced(model):
    stream = model.stream(ask("Tell a very long story about a river.", max_tokens=2000))
    await anext(stream)
    assert model._worker is not None
    model._worker._process.kill()
    with pytest.raises(Unavailable) as caught:
        async for _ in stream:
            pass
    assert (caught.value.key, caught.value.values["status"]) == ("embedded.died", -9)
    assert (await answer(model, ask("Say hello.")))[0]


async def test_it_is_known_as_a_small_model(model, two_layers):
    assert model.traits.name == f"embedded:{two_layers.name}"
    assert (model.traits.small, model.traits.window) == (True, WINDOW)
