"""Streams that end when they must: closed with their reader, and over when their time is up."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from duckflow.domain.errors import Unavailable

Item = TypeVar("Item")

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Past it a stream is given up, envelopes included. What is said inside is bounded by whoever listens."""

END_PATIENCE_S = 0.1
"""How long an answer may take to end after it said so; less than a new connection to most providers takes."""


@asynccontextmanager
async def closing(stream: AsyncIterator[Item]) -> AsyncGenerator[AsyncIterator[Item]]:
    """Read `stream` inside; afterwards it is closed, so whatever feeds it stops."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def read_end(stream: AsyncIterator[object]) -> None:
    """After the last item of interest: a stream that is read to its end leaves its connection to the next.
    One that does not end at once is not worth waiting for."""
    with suppress(TimeoutError):
        async with asyncio.timeout(END_PATIENCE_S):
            async for _ in stream:
                pass


async def bounded(stream: AsyncIterator[Item], seconds: float) -> AsyncGenerator[Item]:
    """The items of `stream`, or `Unavailable` once all of it together took longer than `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    async with closing(stream):
        while True:
            try:
                # For each item: a limit that is open while we wait at our `yield` would cancel our reader.
                async with asyncio.timeout_at(deadline):
                    item = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError as exc:
                raise Unavailable("llm.timeout", seconds=round(seconds, 1)) from exc
            yield item
