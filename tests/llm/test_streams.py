"""Streams are closed with their reader and end when their time is up."""

import asyncio

import pytest

from duckflow.domain.errors import Unavailable
from duckflow.llm.streams import bounded, closing, read_end


class Source:
    """Numbers, and whether they were closed."""

    def __init__(self, *pauses: float) -> None:
        self.closed = False
        self._pauses = pauses

    async def numbers(self):
        try:
            for number, pause in enumerate(self._pauses):
                await asyncio.sleep(pause)
                yield number
        finally:
            self.closed = True


async def test_a_stream_in_time_passes_whole():
    source = Source(0, 0, 0)
    assert [item async for item in bounded(source.numbers(), 5)] == [0, 1, 2]
    assert source.closed


async def test_an_answer_that_does_not_end_when_it_said_so_is_not_waited_for():
    ends, stays = Source(0, 0), Source(0, 3600)
    for source in (ends, stays):
        stream = source.numbers()
        assert await anext(stream) == 0
        await read_end(stream)
        assert source.closed


async def test_a_stream_that_takes_too_long_is_closed_and_worth_another_try():
    source, seen = Source(0, 60), []
    with pytest.raises(Unavailable) as caught:
        await collect(bounded(source.numbers(), 0.05), seen)
    assert (seen, source.closed) == ([0], True)
    assert caught.value.key == "llm.timeout"


async def test_the_readers_own_work_is_not_cancelled_when_time_is_up():
    source, seen = Source(0, 0), []
    with pytest.raises(Unavailable):
        await collect(bounded(source.numbers(), 0.05), seen, pause=0.1)
    assert seen == [0]


async def collect(stream, seen: list, pause: float = 0) -> None:
    async for item in stream:
        await asyncio.sleep(pause)
        seen.append(item)


async def test_a_reader_who_leaves_closes_the_source():
    source = Source(0, 0, 0)
    async with closing(bounded(source.numbers(), 5)) as items:
        async for _ in items:
            break
    assert source.closed
