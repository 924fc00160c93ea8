"""K4: a call that failed for now is made again, with patience that has bounds."""

import asyncio

import pytest

from duckflow.config.settings import LlmSettings
from duckflow.domain.errors import ProviderError, Unavailable
from duckflow.domain.model import ChatMessage, ModelRequest, ModelTraits, Retrying, StreamEnd, TextPiece
from duckflow.i18n.catalogue import text
from duckflow.llm.retry import LONGEST_WAIT_S, REASONS, RetryingClient
from fakes.model import FakeModel
from fakes.rows import every_row

REQUEST = ModelRequest(output="Decision", messages=(ChatMessage(role="user", text="hi"),))
BUSY = Unavailable("llm.rate_limited", provider="p")


class Clock:
    """Waits no time, and remembers for how long."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)


def patient(*turns, tries: int = 4, chance: float = 1.0) -> tuple[RetryingClient, FakeModel, Clock]:
    model, clock = FakeModel(*turns, traits=ModelTraits(name="m", window=99)), Clock()
    return (
        RetryingClient(model, LlmSettings(max_retries=tries - 1), clock.sleep, lambda: chance),
        model,
        clock,
    )


async def collected(client) -> list:
    return [piece async for piece in client.stream(REQUEST)]


async def test_K4_what_works_is_asked_once():
    client, model, clock = patient("fine")
    assert (await collected(client))[-1] == StreamEnd(usage=(await collected(FakeModel("fine")))[-1].usage)
    assert (len(model.requests), clock.waits) == (1, [])


async def test_K4_a_busy_provider_is_asked_again_after_growing_waits():
    client, model, clock = patient([BUSY], [BUSY], [BUSY], "at last")
    pieces = await collected(client)
    assert [piece.wait_s for piece in pieces if isinstance(piece, Retrying)] == clock.waits == [1.0, 2.0, 4.0]
    assert "".join(piece.text for piece in pieces if isinstance(piece, TextPiece)) == "at last"
    assert len(model.requests) == 4


async def test_K4_chance_spreads_the_waits_downwards():
    client, _, clock = patient([BUSY], "ok", chance=0.0)
    await collected(client)
    assert clock.waits == [0.5]


async def test_K4_tries_are_bounded_and_the_last_error_is_told():
    last = Unavailable("llm.cut_off")
    client, model, clock = patient([BUSY], [BUSY], [last], "never heard", tries=3)
    with pytest.raises(Unavailable) as caught:
        await collected(client)
    assert caught.value is last
    assert (len(model.requests), len(clock.waits)) == (3, 2)


async def test_K4_a_call_that_used_up_its_time_is_repeated_only_once():
    late = Unavailable("llm.timeout", seconds=300)
    client, model, _ = patient([late], [late], "never heard")
    with pytest.raises(Unavailable):
        await collected(client)
    assert len(model.requests) == 2


async def test_K4_a_piece_says_that_what_was_streamed_is_void():
    client, _, _ = patient([TextPiece(text="half"), Unavailable("llm.cut_off")], "whole")
    pieces = await collected(client)
    at = next(place for place, piece in enumerate(pieces) if isinstance(piece, Retrying))
    assert pieces[:at] == [TextPiece(text="half")]
    assert "".join(piece.text for piece in pieces[at + 1 : -1]) == "whole"


@every_row(("asked_for", "waited"), [(0.0, 0.0), (7.0, 7.0), (290.0, 290.0), (300.0, 300.0), (-5.0, 0.0)])
async def test_K4_a_provider_may_ask_for_minutes(asked_for, waited):
    client, _, clock = patient([Unavailable("llm.rate_limited", retry_after_s=asked_for)], "ok")
    await collected(client)
    assert clock.waits == [waited]


@every_row(("asked_for", "minutes"), [(301.0, "6"), (3_600.0, "60"), (1e7, "166,667")])
async def test_K4_a_longer_wait_is_left_to_the_user_at_once(asked_for, minutes):
    client, model, clock = patient([Unavailable("llm.rate_limited", retry_after_s=asked_for)], "never heard")
    with pytest.raises(ProviderError) as caught:
        await collected(client)
    assert (len(model.requests), clock.waits) == (1, [])
    assert f"{minutes} minutes" in text(caught.value.key, **caught.value.values)


async def test_K4_waits_do_not_grow_for_ever():
    client, _, clock = patient(*[[BUSY]] * 9, "ok", tries=10)
    await collected(client)
    assert max(clock.waits) == LONGEST_WAIT_S


@every_row("error", [ProviderError("llm.wrong_key"), ValueError("a fault of ours")])
async def test_K4_nothing_else_is_repeated(error):
    client, model, clock = patient([error], "never heard")
    with pytest.raises(type(error)):
        await collected(client)
    assert (len(model.requests), clock.waits) == (1, [])


async def test_K4_a_stream_that_just_stops_counts_as_cut_off():
    client, model, _ = patient([TextPiece(text="half")], "whole")
    assert isinstance((await collected(client))[-1], StreamEnd)
    assert len(model.requests) == 2


async def test_cancelling_ends_the_wait_and_asks_no_more():
    model = FakeModel([Unavailable("llm.rate_limited", retry_after_s=25)], "never heard")
    client = RetryingClient(model, LlmSettings())
    waiting = asyncio.Event()

    async def listen() -> None:
        async for piece in client.stream(REQUEST):
            if isinstance(piece, Retrying):
                waiting.set()

    reader = asyncio.create_task(listen())
    await waiting.wait()
    await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert len(model.requests) == 1


async def test_closing_the_iterator_closes_the_one_inside():
    client, model, _ = patient("a long answer in many pieces")
    stream = client.stream(REQUEST)
    await anext(stream)
    await stream.aclose()
    assert model.streams_closed == 1


async def test_it_is_what_it_wraps():
    client, model, _ = patient()
    assert client.traits.window == 99
    assert client.inner is model
    await client.aclose()
    assert model.closed


@every_row("key", REASONS.values())
def test_every_reason_to_wait_has_a_text_without_slots(key):
    assert "{" not in text(key)


async def test_a_call_takes_no_more_than_the_user_lets_it():
    """llm.max_tokens bounds every answer, llm.time_limit_s is the time of every call."""
    model = FakeModel("fine", "fine")
    client = RetryingClient(model, LlmSettings(max_tokens=50, time_limit_s=7.5))
    for wanted in (4096, 20):
        request = ModelRequest(output="Decision", messages=REQUEST.messages, max_tokens=wanted)
        assert [piece async for piece in client.stream(request)]
    assert [(sent.max_tokens, sent.time_limit_s) for sent in model.requests] == [(50, 7.5), (20, 7.5)]
