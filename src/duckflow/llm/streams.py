"""Streams of a model's answer that close together with their reader, and end when their time is up."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TypeVar

from duckflow.domain.errors import Unavailable

Item = TypeVar("Item")

MAX_ANSWER_BYTES = 64 * 1024 * 1024
"""Limit on a whole stream, JSON around the text included. The reader limits the text itself."""

END_PATIENCE_S = 0.1
"""Time to wait for a stream to close after its last event; less than most new connections take."""


@asynccontextmanager
async def closing(stream: AsyncIterator[Item]) -> AsyncGenerator[AsyncIterator[Item]]:
    """Close `stream` on exit, so that its source stops too."""
    try:
        yield stream
    finally:
        if isinstance(stream, AsyncGenerator):
            await stream.aclose()


async def read_end(stream: AsyncIterator[object]) -> None:
    """Read the rest of a stream for END_PATIENCE_S at most, so that its connection can be reused."""
    with suppress(TimeoutError):
        async with asyncio.timeout(END_PATIENCE_S):
            async for _ in stream:
                pass


async def bounded(stream: AsyncIterator[Item], seconds: float) -> AsyncGenerator[Item]:
    """Yield the items of `stream`. Raise `Unavailable` if the whole stream takes longer than `seconds`."""
    deadline = asyncio.get_running_loop().time() + seconds
    async with closing(stream):
        while True:
            try:
                # Entered for each item: left open across `yield`, it would cancel the caller between items.
                async with asyncio.timeout_at(deadline):
                    item = await anext(stream)
            except StopAsyncIteration:
                return
            except TimeoutError as exc:
                raise Unavailable("llm.timeout", seconds=round(seconds, 1)) from exc
            yield item
